"""Which SGLang an environment has, and whether our engine can stand in for its scheduler.

Read from its files, without importing it: that takes ten seconds.
"""

from __future__ import annotations

import ast
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from detokbench.errors import DetokbenchError
from detokbench.live.engines.sglang_plugin.batch import KNOWN, NEEDED
from detokbench.live.engines.vllm_versions import fields_by_class, without_default

# Versions that the front ends were tried with.
TRIED = ("0.5.22", "0.5.23")
_MESSAGE = "BatchTokenIDOutput"
_ASK = """
import importlib.metadata, importlib.util, json
spec = importlib.util.find_spec("sglang")
print(json.dumps([importlib.metadata.version("sglang"), spec.submodule_search_locations[0]]))
"""
_ASK_TIMEOUT_S = 60


@dataclass(frozen=True)
class InstalledSglang:
    """A version, and the folder of its package."""

    version: str
    package: Path


def installed_sglang(python: Path, rust: bool = False) -> InstalledSglang:
    """Ask an interpreter for its SGLang, and check what our engine needs of it.

    Raises DetokbenchError where there is none, or one without plug-ins, with a message whose
    required fields are not known here, or (for ``rust``) without the Rust server.
    """
    found = _ask(python)
    source = found.package / "srt" / "managers" / "io_struct.py"
    _need(found, "srt/plugins/hook_registry.py", "plug-ins (sglang.srt.plugins)")
    if rust:
        _need(found, "srt/rust_server/server.py", "Rust server")
    try:
        check_message(found.version, source.read_text())
    except OSError as error:
        raise DetokbenchError(f"SGLang {found.version} has no {source}") from error
    return found


def check_message(version: str, source: str) -> None:
    """Whether the message of a step can be built. Raises DetokbenchError where it cannot.

    ``source`` is the text of ``sglang/srt/managers/io_struct.py``.
    """
    owners = _with_bases(source, _MESSAGE)
    fields = {name for owner in owners for name in fields_by_class(source).get(owner, [])}
    required = {name for owner in owners for name in without_default(source, owner)}
    if unknown := sorted(required - set(KNOWN)):
        raise DetokbenchError(
            f"SGLang {version}: its {_MESSAGE} wants {', '.join(unknown)}, which is not known here"
        )
    if missing := sorted(set(NEEDED) - fields):
        raise DetokbenchError(f"SGLang {version}: its {_MESSAGE} has no {', '.join(missing)}")


def _with_bases(source: str, owner: str) -> list[str]:
    """A class and those of the same module that it inherits from."""
    bases = {
        node.name: [base.id for base in node.bases if isinstance(base, ast.Name)]
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
    }
    found = [owner] if owner in bases else []
    for name in found:
        found += [base for base in bases[name] if base in bases and base not in found]
    return found


def _ask(python: Path) -> InstalledSglang:
    try:
        asked = subprocess.run(
            [python, "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=_ASK_TIMEOUT_S,
            check=False,
        )
        if asked.returncode == 0:
            version, package = json.loads(asked.stdout)
            return InstalledSglang(version, Path(package))
        why = asked.stderr.strip().splitlines()[-1]
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        why = str(error)
    raise DetokbenchError(f"no SGLang in the environment of {python}: {why}")


def _need(found: InstalledSglang, file: str, what: str) -> None:
    if not (found.package / file).exists():
        raise DetokbenchError(f"SGLang {found.version} there has no {what}")
