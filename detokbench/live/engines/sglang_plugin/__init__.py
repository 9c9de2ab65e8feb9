"""An engine of ours in place of SGLang's ``Scheduler``, inside the process that SGLang starts.

This package is copied into the folder of a run, which is on PYTHONPATH there, with an entry point
in the group ``sglang.srt.plugins``; nothing is installed in SGLang's environment. So it imports
the standard library, what SGLang brings, and itself, but never detokbench.
"""

from __future__ import annotations

import importlib
import sys

NOTES_FILE = "engine.json"
SCHEDULER_MODULE = "sglang.srt.managers.scheduler"
FOLDER_VARIABLE = "DETOKBENCH_ENGINE_FOLDER"
WORKLOAD_VARIABLE = "DETOKBENCH_ENGINE_WORKLOAD"


def register() -> None:
    """Replace the scheduler's class (``sglang/srt/plugins/hook_registry.py``), where it runs.

    SGLang calls every plug-in in each of its processes. Those that have not imported the
    scheduler's module do not use it, and are left as they are.
    """
    if SCHEDULER_MODULE not in sys.modules:
        return
    from .scheduler import EngineScheduler

    hooks = importlib.import_module("sglang.srt.plugins.hook_registry")
    hooks.HookRegistry.register(
        f"{SCHEDULER_MODULE}.Scheduler", EngineScheduler, hooks.HookType.REPLACE
    )
