"""Timing: workers, their manager, the fit and the statistics."""
