"""detokbench: what it costs the host to turn token ids into text while a model generates."""

__version__ = "0.1.0"
