"""The vocabulary and the path that a process of the host works with."""

from __future__ import annotations

from detokbench.errors import DetokbenchError
from detokbench.live.plan import LoadRequest
from detokbench.paths.protocol import PathClass
from detokbench.paths.registry import load_path_class
from detokbench.vocab import load_vocabulary
from detokbench.vocab.vocabulary import Vocabulary


def load_both(request: LoadRequest) -> tuple[Vocabulary, PathClass]:
    """Load them. Raises DetokbenchError where the path does not apply to the vocabulary."""
    vocabulary = load_vocabulary(request.vocabulary, request.trust_remote_code)
    path_class = load_path_class(request.path)
    why = path_class.why_not(vocabulary)
    if why is not None:
        raise DetokbenchError(f"path '{request.path}' does not apply to {vocabulary.name}: {why}")
    return vocabulary, path_class
