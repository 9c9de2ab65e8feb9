"""A model folder made from a vocabulary is that vocabulary, for transformers and for us."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming import script_ids, vocabulary

from detokbench.cli import main
from detokbench.errors import ExitCode
from detokbench.vocab.chat_templates import chat_template
from detokbench.vocab.from_files import load_pretrained
from detokbench.vocab.registry import known_vocabularies
from detokbench.workload.texts import load_text

NAMES = [known.name for known in known_vocabularies()]
CHATS = [
    [("user", " Hi there\n")],
    [("system", "Be short."), ("user", "Hi")],
    [("user", "a"), ("assistant", "b"), ("user", "c 歪")],
]


@pytest.fixture(autouse=True)
def loaded_once(monkeypatch):
    monkeypatch.setattr("detokbench.vocab.registry.load_vocabulary", known_once)
    monkeypatch.setattr("detokbench.vocab.export.load_vocabulary", known_once)


def known_once(name, trust_remote_code=False):
    return vocabulary(name) if name in NAMES else load_pretrained(name, trust_remote_code)


def own_file(name):
    """The file that one of Mistral's own tokenizers was read from."""
    return vocabulary(name).tokenizer.file


def rust_form(name):
    """The vocabulary whose ids a folder made from this one gives."""
    return name if vocabulary(name).is_rust else f"{name}-fast"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("detokbench.vocab.registry.load_vocabulary", known_once)
        patched.setattr("detokbench.vocab.export.load_vocabulary", known_once)
        made = {name: tmp_path_factory.mktemp(name) / "model" for name in NAMES}
        for name, folder in made.items():
            assert main(["vocab", "export", name, str(folder), "--tiny-config"]) == ExitCode.OK
    return made


@pytest.fixture(scope="module")
def reloaded(folders):
    from transformers import AutoTokenizer

    return {name: AutoTokenizer.from_pretrained(folder) for name, folder in folders.items()}


# What is in the folder


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(text=st.text(max_size=40))
def test_autotokenizer_gives_the_vocabularys_ids_and_texts(reloaded, name, text):
    expected = vocabulary(rust_form(name))
    ids = expected.encode(text)
    assert reloaded[name].encode(text, add_special_tokens=False) == ids
    assert reloaded[name].decode(ids) == expected.decode(ids, skip_special_tokens=False)


@pytest.mark.parametrize("name", ["llama-3", "mistral-spm"])
def test_so_does_the_folder_as_a_vocabulary(folders, name):
    loaded = load_pretrained(str(folders[name]), trust_remote_code=False)
    assert loaded.size == vocabulary(name).size
    assert loaded.is_rust
    for script, ids in script_ids(name).items():
        assert loaded.encode(load_text(script)) == ids, script


@pytest.mark.parametrize("name", NAMES)
def test_the_configuration_fits_the_vocabulary(folders, name):
    from transformers import AutoConfig, GenerationConfig

    config = AutoConfig.from_pretrained(folders[name])
    generation = GenerationConfig.from_pretrained(folders[name])
    tokenizer = vocabulary(rust_form(name)).tokenizer
    assert config.architectures == ["LlamaForCausalLM"]
    assert config.vocab_size == vocabulary(name).size
    assert config.max_position_embeddings == 131_072
    assert config.bos_token_id == generation.bos_token_id == tokenizer.bos_token_id
    assert config.eos_token_id == tokenizer.eos_token_id
    ends = generation.eos_token_id
    assert tokenizer.eos_token_id in (ends if isinstance(ends, list) else [ends])


def test_llama3_ends_where_its_instruct_models_end(folders):
    generation = json.loads((folders["llama-3"] / "generation_config.json").read_text())
    assert generation["eos_token_id"] == [128_001, 128_008, 128_009]


@pytest.mark.parametrize("name", NAMES)
def test_any_transformers_knows_the_tokenizers_class(folders, name):
    settings_file = folders[name] / "tokenizer_config.json"
    assert json.loads(settings_file.read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"


@pytest.mark.parametrize(
    ("name", "file"), [("tekken", "tekken.json"), ("mistral-spm", "tokenizer.model.v1")]
)
def test_mistrals_own_tokenizers_come_with_their_own_file(folders, name, file):
    assert (folders[name] / file).read_bytes() == own_file(name).read_bytes()
    assert not (folders[f"{name}-fast"] / file).exists()


def test_nothing_but_these_files_is_written(folders):
    assert sorted(path.name for path in folders["llama-3"].iterdir()) == [
        "chat_template.jinja", "config.json", "generation_config.json", "tokenizer.json",
        "tokenizer_config.json",
    ]  # fmt: skip


# Chat templates, held against the makers' own code


def rendered_ids(reloaded, name, chat):
    messages = [{"role": role, "content": content} for role, content in chat]
    tokenizer = reloaded[name]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return tokenizer.encode(text, add_special_tokens=False)


@pytest.mark.parametrize("chat", CHATS)
def test_llama3s_chat_is_metas(reloaded, chat):
    from llama_models.datatypes import RawMessage
    from llama_models.llama3.chat_format import ChatFormat
    from llama_models.llama3.tokenizer import Tokenizer

    from detokbench.vocab.llama3 import _ranks_path

    meta = ChatFormat(Tokenizer(_ranks_path()))
    dialog = [RawMessage(role=role, content=content) for role, content in chat]
    assert rendered_ids(reloaded, "llama-3", chat) == meta.encode_dialog_prompt(dialog).tokens


@cache
def own_chats(name):
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    return MistralTokenizer.from_file(str(own_file(name)))


@pytest.mark.parametrize("name", ["tekken", "mistral-spm"])
@pytest.mark.parametrize("chat", CHATS)
def test_mistrals_chats_are_mistrals(reloaded, name, chat):
    from mistral_common.protocol.instruct.request import ChatCompletionRequest

    messages = [{"role": role, "content": content} for role, content in chat]
    expected = (
        own_chats(name).encode_chat_completion(ChatCompletionRequest(messages=messages)).tokens
    )
    assert rendered_ids(reloaded, name, chat) == expected


# A vocabulary of the user's


def test_a_folders_own_template_is_kept(folders, tmp_path):
    ours = tmp_path / "llama-3"
    assert main(["vocab", "export", "llama-3", str(ours)]) == ExitCode.OK
    (ours / "chat_template.jinja").write_text("mine")
    again = tmp_path / "again"
    assert main(["vocab", "export", str(ours), str(again)]) == ExitCode.OK
    assert (again / "chat_template.jinja").read_text() == "mine"
    assert not (again / "config.json").exists()


def test_without_a_template_it_says_so(folders, tmp_path, capsys):
    ours = tmp_path / "ours"
    main(["vocab", "export", "llama-3", str(ours)])
    (ours / "chat_template.jinja").unlink()
    assert main(["vocab", "export", str(ours), str(tmp_path / "again")]) == ExitCode.OK
    assert "No chat template" in capsys.readouterr().err
    assert chat_template(str(ours)) is None


# The folder


def refused(folder, *options):
    return main(["vocab", "export", "llama-3", str(folder), *options])


def test_a_folder_with_something_in_it_is_left_alone(tmp_path, capsys):
    (tmp_path / "weights").write_text("mine")
    assert refused(tmp_path) == ExitCode.USAGE
    assert "--force" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["weights"]


def test_force_replaces_the_tokenizer_only(tmp_path):
    (tmp_path / "weights").write_text("mine")
    (tmp_path / "config.json").write_text("mine")
    (tmp_path / "tekken.json").write_text("of another vocabulary")
    assert refused(tmp_path, "--force") == ExitCode.OK
    assert (tmp_path / "weights").read_text() == (tmp_path / "config.json").read_text() == "mine"
    assert not (tmp_path / "tekken.json").exists()


def test_force_does_not_write_through_links(tmp_path):
    model, cache = tmp_path / "model", tmp_path / "cache"
    model.mkdir()
    cache.write_text("shared")
    for name in ("tokenizer.json", "config.json"):
        (model / name).symlink_to(cache)
    assert refused(model, "--force", "--tiny-config") == ExitCode.OK
    assert cache.read_text() == "shared"


def test_a_file_is_no_folder(tmp_path, capsys):
    (tmp_path / "model").write_text("mine")
    assert refused(tmp_path / "model") == ExitCode.USAGE
    assert "is a file" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_said_in_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert refused(tmp_path / "file" / "model") == ExitCode.BROKEN_SETUP
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_unknown_name_makes_no_folder(tmp_path):
    assert main(["vocab", "export", "lama-3", str(tmp_path / "model")]) == ExitCode.USAGE
    assert not (tmp_path / "model").exists()


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from detokbench.cli import main; main(['vocab', 'export', '--help']); "
        "sys.exit('transformers' in sys.modules)"
    )
    root = Path(__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
