"""Chat templates for the vocabularies that come without one: our own text of published formats.

Line breaks stand inside expressions, so that no template engine's trimming touches them.
"""

from __future__ import annotations

_LLAMA3 = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}"
    "{{ message['content'] }}<|eot_id|>"
    "{% endfor %}"
    "{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"
    "{% endif %}"
)


def _mistral(before: str, after: str, answer: str) -> str:
    """Turns between ``[INST]`` and ``[/INST]``; a system prompt opens the user's next one."""
    return (
        "{{ bos_token }}{% set ns = namespace(system='') %}"
        "{% for message in messages %}"
        "{% if message['role'] == 'system' %}"
        "{% set ns.system = message['content'] + '\\n\\n' %}"
        "{% elif message['role'] == 'user' %}"
        f"{{{{ '{before}' + ns.system + message['content'] + '{after}' }}}}"
        "{% set ns.system = '' %}"
        "{% else %}"
        f"{{{{ '{answer}' + message['content'] + eos_token }}}}"
        "{% endif %}"
        "{% endfor %}"
    )


_TEKKEN = _mistral("[INST]", "[/INST]", "")
_MISTRAL_SPM = _mistral("[INST] ", " [/INST]", " ")
_TEMPLATES = {
    "llama-3": _LLAMA3,
    "tekken": _TEKKEN,
    "tekken-fast": _TEKKEN,
    "mistral-spm": _MISTRAL_SPM,
    "mistral-spm-fast": _MISTRAL_SPM,
}


def chat_template(vocabulary_name: str) -> str | None:
    """The template of a vocabulary that is known by name; None for any other.

    Llama-3's is that of the 8B and 70B instruct models, without tools; Mistral's those of its
    tokenizers v3 (Tekken) and v1 (SentencePiece).
    """
    return _TEMPLATES.get(vocabulary_name)
