"""Scenarios and texts become streams of token ids."""
