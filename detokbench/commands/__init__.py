"""One file a command: read options, call, choose the exit code."""
