import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from streaming import assert_error, script_ids, vocabulary

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.vocab import known_vocabularies, load_vocabulary
from detokbench.vocab.conversion_cache import cached_file
from detokbench.vocab.llama3 import _ranks_path
from detokbench.vocab.property_cache import with_cached_properties
from detokbench.workload.texts import load_text, script_names

CONTENT = b"the converted tokenizer"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DETOKBENCH_CACHE", str(folder))
    return folder


# The vocabularies themselves


@pytest.mark.parametrize("known", known_vocabularies(), ids=lambda known: known.name)
def test_each_vocabulary_is_what_the_list_says(known):
    loaded = vocabulary(known.name)
    assert loaded.size == known.ids
    assert loaded.is_rust == (known.tokenizer == "Rust")
    assert loaded.source.startswith(known.package)


def test_llama3_has_metas_special_tokens_at_the_end(llama3):
    special = llama3.rust.get_added_tokens_decoder()
    assert sorted(special) == list(range(128_000, 128_256))
    assert all(token.special for token in special.values())
    assert special[128_000].content == "<|begin_of_text|>"
    assert special[128_001].content == "<|end_of_text|>"
    assert special[128_009].content == "<|eot_id|>"


def test_llama3_gives_the_ids_of_metas_own_tokenizer(llama3):
    from llama_models.llama3.tokenizer import Tokenizer

    meta = Tokenizer(_ranks_path())
    special = llama3.rust.get_added_tokens_decoder()
    assert meta.special_tokens == {token.content: i for i, token in special.items()}
    for name, ids in script_ids("llama-3").items():
        assert ids == meta.encode(load_text(name), bos=False, eos=False), name


@pytest.mark.parametrize("name", ["tekken", "mistral-spm"])
def test_fast_form_gives_the_ids_and_texts_of_mistrals_own_tokenizer(name):
    own, fast = vocabulary(name), vocabulary(f"{name}-fast")
    assert script_ids(own.name) == script_ids(fast.name)
    for text in ["Hello world", "  two spaces", "\n\n", "a\tb", "x<0x41>y", "ﬁ ½ é"]:
        ids = own.encode(text)
        assert fast.encode(text) == ids
        assert own.decode(ids) == fast.decode(ids) == text


def test_fast_tekken_decodes_single_ids_as_mistrals_own(tekken, tekken_fast):
    for skip in (True, False):
        ids = [*range(0, 1300), *range(1300, tekken.size, 97), tekken.size - 1]
        own = [tekken.decode([i], skip_special_tokens=skip) for i in ids]
        assert [tekken_fast.decode([i], skip_special_tokens=skip) for i in ids] == own


@pytest.mark.parametrize("name", [known.name for known in known_vocabularies()])
def test_texts_come_back_whole(name):
    loaded = vocabulary(name)
    for script, ids in script_ids(name).items():
        assert loaded.decode(ids) == load_text(script), script
    assert len(script_ids(name)) == len(script_names()) == 20


def test_encode_adds_no_special_token_and_decode_skips_them_by_default(llama3):
    ids = llama3.encode("Hello<|eot_id|>")
    assert ids == [9906, 128_009]
    assert llama3.decode(ids) == "Hello"
    assert llama3.decode(ids, skip_special_tokens=False) == "Hello<|eot_id|>"


# The tokenizer of Mistral's own, as vLLM's wrapper drives it


def test_tekken_pieces_are_bytes_as_soon_as_one_is_no_text(tekken):
    tokenizer = tekken.tokenizer
    assert tokenizer.convert_ids_to_tokens([22177, 4304], True) == ["Hello", " world"]
    pieces = tokenizer.convert_ids_to_tokens([22177, 1240], True)
    assert pieces == [b"Hello", b"\xf0"]
    assert tokenizer.convert_tokens_to_string([*pieces, b"\x9f", b"\x8c", b"\xb6"]) == "Hello🌶"


def test_tekken_shows_tool_calls_though_special_tokens_are_skipped(tekken):
    tokenizer = tekken.tokenizer
    ids = [1, 22177, 9, 2]  # <s> Hello [TOOL_CALLS] </s>
    pieces = tokenizer.convert_ids_to_tokens(ids, skip_special_tokens=True)
    assert pieces == ["Hello", "[TOOL_CALLS]"]
    assert tokenizer.convert_tokens_to_string(pieces) == "Hello[TOOL_CALLS]"
    assert tokenizer.convert_tokens_to_string([b"\xf0", "[TOOL_CALLS]"]) == "\ufffd[TOOL_CALLS]"


def test_tekken_writes_unk_for_a_piece_without_id_among_bytes(tekken):
    assert tekken.tokenizer.convert_tokens_to_string([b"Hello", ""]) == "Hello<unk>"


def test_cached_properties_answer_as_the_tokenizer_does(llama3):
    plain, cached = llama3.tokenizer, with_cached_properties(llama3.tokenizer)
    assert cached.all_special_ids == plain.all_special_ids
    assert cached.all_special_tokens == plain.all_special_tokens
    assert cached.get_vocab() == plain.get_vocab()
    assert len(cached) == len(plain) == 128_256
    assert cached.is_fast is plain.is_fast is True
    assert cached.get_added_vocab() == plain.get_added_vocab()
    assert cached.decode([9906, 1917]) == "Hello world"


def test_cached_properties_are_worked_out_once_and_on_a_copy_only(llama3):
    plain, cached = llama3.tokenizer, with_cached_properties(llama3.tokenizer)
    assert cached.get_vocab() is cached.get_vocab()
    assert cached.all_special_ids is cached.all_special_ids
    assert plain.get_vocab() is not plain.get_vocab()
    assert type(cached).__name__ == f"Cached{type(plain).__name__}"
    assert isinstance(cached, type(plain))


def test_mistrals_own_tokenizer_gets_no_cache_around_it(tekken):
    assert tekken.cached_tokenizer is tekken.tokenizer


# The cache of converted tokenizers


class CountedBuild:
    """A conversion that counts how often it ran."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return CONTENT


def test_cached_file_is_built_once(cache):
    build = CountedBuild()
    paths = {cached_file("name.json", build) for _ in range(3)}
    assert paths == {cache / "name.json"}
    assert build.times == 1


@pytest.mark.parametrize("victim", ["name.json", "name.json.sha256"])
@pytest.mark.parametrize("damage", ["flipped", "cut", "missing"])
def test_damaged_cache_file_is_built_again(cache, victim, damage):
    build = CountedBuild()
    cached_file("name.json", build)
    path = cache / victim
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:5])
    else:
        path.write_bytes(bytes(byte ^ 0xFF for byte in path.read_bytes()))
    assert cached_file("name.json", build).read_bytes() == CONTENT
    assert build.times == 2
    cached_file("name.json", build)
    assert build.times == 2


def test_damaged_vocabulary_is_converted_again(cache, spm_fast):
    load_vocabulary("mistral-spm-fast")
    (path,) = cache.glob("*.json")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"Hello", b"Jello", 1))
    loaded = load_vocabulary("mistral-spm-fast")
    assert loaded.rust.to_str() == spm_fast.rust.to_str()
    assert path.read_bytes() == whole


def test_cache_folder_that_cannot_be_written_is_named_with_its_variable(tmp_path, monkeypatch):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    monkeypatch.setenv("DETOKBENCH_CACHE", str(in_the_way / "cache"))
    with pytest.raises(DetokbenchError) as caught:
        cached_file("name.json", CountedBuild())
    assert_error(caught, ExitCode.BROKEN_SETUP, str(in_the_way / "cache"), "DETOKBENCH_CACHE")


def test_two_builds_at_once_both_get_a_whole_file(cache):
    content = b"x" * (4 << 20)
    both_building = Barrier(2, timeout=30)

    def build():
        both_building.wait()
        return content

    def build_and_read(_):
        return cached_file("name.json", build).read_bytes()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(build_and_read, range(2))) == [content, content]
    assert sorted(path.name for path in cache.iterdir()) == ["name.json", "name.json.sha256"]


def test_failed_write_leaves_nothing_behind(cache):
    cache.mkdir()
    (cache / "name.json").mkdir()  # a folder cannot be replaced by a file
    with pytest.raises(DetokbenchError) as caught:
        cached_file("name.json", CountedBuild())
    assert_error(caught, ExitCode.BROKEN_SETUP, "DETOKBENCH_CACHE")
    assert [path.name for path in cache.iterdir()] == ["name.json"]


# Names that are no vocabulary


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("lama-3", "llama-3"), ("teken", "tekken"), ("tekken_fast", "tekken-fast")],
)
def test_unknown_name_is_a_usage_error_with_the_nearest_name(name, nearest):
    with pytest.raises(DetokbenchError) as caught:
        load_vocabulary(name)
    assert_error(caught, ExitCode.USAGE, f"'{name}'", f"did you mean '{nearest}'")


def test_name_like_no_other_lists_the_known_ones():
    with pytest.raises(DetokbenchError) as caught:
        load_vocabulary("qqq")
    assert_error(caught, ExitCode.USAGE, "'qqq'", "llama-3, tekken, ")


def test_tokenizer_file_of_the_users(tmp_path, spm_fast):
    path = tmp_path / "mine.json"
    path.write_text(spm_fast.rust.to_str())
    mine = load_vocabulary(str(path))
    assert (mine.name, mine.source, mine.is_rust) == ("mine.json", "file mine.json", True)
    assert mine.encode("歪龘𠮷") == spm_fast.encode("歪龘𠮷")


@pytest.mark.parametrize("content", ["{", "{}", '{"model": 5}', "\xff"])
def test_broken_tokenizer_json_is_named_in_one_line(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(DetokbenchError) as caught:
        load_vocabulary(str(path))
    assert_error(caught, ExitCode.BROKEN_SETUP, str(path), "not a tokenizer.json")


def test_folder_without_a_tokenizer_is_named_in_one_line(tmp_path):
    with pytest.raises(DetokbenchError) as caught:
        load_vocabulary(str(tmp_path))
    assert_error(caught, ExitCode.BROKEN_SETUP, str(tmp_path))


def test_hub_id_out_of_reach_is_one_line_with_exit_code_5(tmp_path):
    script = (
        "from detokbench.errors import DetokbenchError\n"
        "from detokbench.vocab import load_vocabulary\n"
        "try:\n"
        "    load_vocabulary('nobody-here/no-such-model')\n"
        "except DetokbenchError as error:\n"
        "    print(error)\n"
        "    raise SystemExit(error.exit_code)\n"
    )
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=offline, capture_output=True, text=True, check=False
    )
    assert done.returncode == ExitCode.BROKEN_SETUP, done.stderr
    (line,) = done.stdout.splitlines()
    assert "'nobody-here/no-such-model'" in line
    assert "Traceback" not in done.stderr
