"""Real processes at a real pace, and servers that are watched from outside."""
