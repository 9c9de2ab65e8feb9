"""Our paths against the engine's own classes: the same streams, text by text and cost by cost."""
