"""Which vLLM speaks which dialect: positions of fields in its messages, by version.

The messages are msgpack arrays without names (``vllm/v1/engine/__init__.py``: EngineCoreRequest,
EngineCoreOutput, EngineCoreOutputs, UtilityOutput). Their leading fields were the same from 0.20
to 0.33, compared in the sources of 0.20.0, 0.21.0, 0.22.1, 0.23.0, 0.24.0, 0.27.1, 0.29.0, 0.32.0
and 0.33.0, but for ``prompt_is_token_ids``, which came before ``client_index`` with 0.21. An
installed vLLM's source is read beside, never imported: where its fields are not at the places
known here, nothing is guessed.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from detokbench.errors import DetokbenchError
from detokbench.live.engines.vllm_handshake import READY_KEYS

OLDEST, NEWEST = (0, 20), (0, 33)
_ASK_TIMEOUT_S = 60
_ASK = """
import importlib.metadata, importlib.util, json
found = importlib.util.find_spec("vllm")
print(json.dumps(found and [importlib.metadata.version("vllm"), found.origin]))
"""


class Layout(msgspec.Struct, frozen=True):
    """Positions in the messages that we read and write.

    ``client_index`` and ``external_id`` (``external_req_id``) are places in EngineCoreRequest, the
    rest is common to all versions known: see ``vllm_messages``.
    """

    client_index: int
    external_id: int


class Installed(msgspec.Struct, frozen=True):
    """A vLLM as an interpreter has it: ``package`` is the folder of its modules."""

    version: str
    package: str
    layout: Layout


def layout_of(version: str) -> Layout:
    """The layout of a version such as ``0.33.0``. Raises DetokbenchError for one not known."""
    number = re.match(r"(\d+)\.(\d+)", version)
    parts = (int(number[1]), int(number[2])) if number else None
    if parts is None or not OLDEST <= parts <= NEWEST:
        oldest, newest = (".".join(map(str, end)) for end in (OLDEST, NEWEST))
        raise DetokbenchError(
            f"vLLM {version} is not known here: its messages may differ from those of "
            f"{oldest} to {newest}"
        )
    client_index = 10 if parts < (0, 21) else 11
    return Layout(client_index, client_index + 5)


def installed_vllm(python: Path) -> Installed:
    """Which vLLM an interpreter has, found without importing it.

    Raises DetokbenchError where it has none, one not known here, or one whose fields have moved.
    """
    version, origin = _ask(python)
    layout = layout_of(version)
    package = Path(origin).parent
    try:
        source = (package / "v1" / "engine" / "__init__.py").read_text()
    except OSError as error:
        raise DetokbenchError(f"vLLM {version}: no {error.filename} to read its fields") from error
    check_fields(version, layout, source)
    return Installed(version, str(package), layout)


def _ask(python: Path) -> tuple[str, str]:
    try:
        asked = subprocess.run(
            [str(python), "-I", "-c", _ASK],
            capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, check=False,
        )  # fmt: skip
        if asked.returncode == 0:
            found = json.loads(asked.stdout.splitlines()[-1])
            if found is None:
                raise DetokbenchError(f"there is no vLLM in the environment of {python}")
            version, origin = found
            return version, origin
        why = asked.stderr.strip().splitlines()[-1]
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        why = str(error)
    raise DetokbenchError(f"cannot ask {python} for its vLLM: {why}")


def check_fields(version: str, layout: Layout, source: str) -> None:
    """Compare the layout with the classes in vLLM's source. Raises DetokbenchError if they differ.

    ``source`` is the text of ``vllm/v1/engine/__init__.py``.
    """
    fields = fields_by_class(source)
    unknown = set(without_default(source, "EngineCoreReadyResponse")) - READY_KEYS
    if unknown:
        raise DetokbenchError(
            f"vLLM {version}: its EngineCoreReadyResponse wants {', '.join(sorted(unknown))}, "
            "which is not known here"
        )
    for owner, wanted in _known_places(layout).items():
        found = fields.get(owner, [])
        for place, name in wanted.items():
            there = found[place] if place < len(found) else "nothing"
            if there != name:
                raise DetokbenchError(
                    f"vLLM {version}: field {place} of its {owner} is '{there}', not '{name}' as "
                    "in the versions known here; its messages cannot be read"
                )


def _known_places(layout: Layout) -> dict[str, dict[int, str]]:
    def leading(*names: str) -> dict[int, str]:
        return dict(enumerate(names))

    return {
        "EngineCoreRequest": {
            0: "request_id",
            3: "sampling_params",
            layout.client_index: "client_index",
            layout.external_id: "external_req_id",
        },
        "EngineCoreOutput": leading(
            "request_id", "new_token_ids", "new_logprobs", "new_prompt_logprobs_tensors",
            "pooling_output", "finish_reason", "stop_reason", "events",
        ),
        "EngineCoreOutputs": leading(
            "engine_index", "outputs", "scheduler_stats", "timestamp", "utility_output",
        ),
        "UtilityOutput": leading("call_id", "failure_message", "result"),
    }  # fmt: skip


def fields_by_class(source: str) -> dict[str, list[str]]:
    """Names of the annotated fields of each class of a module, in their order."""
    return {
        node.name: [
            line.target.id
            for line in node.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        ]
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
    }


def without_default(source: str, owner: str) -> Sequence[str]:
    """Names of the fields of a class that have no default: those that a message must have."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == owner:
            return [
                line.target.id
                for line in node.body
                if isinstance(line, ast.AnnAssign)
                and isinstance(line.target, ast.Name)
                and line.value is None
            ]
    return []
