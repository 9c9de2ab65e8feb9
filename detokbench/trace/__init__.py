"""One stream through one path, step by step: what a path holds, sends and loses."""

from detokbench.trace.compare import Comparison, Difference
from detokbench.trace.run import trace_stream
from detokbench.trace.steps import Outcome, Trace, TraceStep

__all__ = ["Comparison", "Difference", "Outcome", "Trace", "TraceStep", "trace_stream"]
