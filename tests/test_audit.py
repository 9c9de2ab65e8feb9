"""``detokbench audit``: facts of the shipped vocabularies, made-up tokenizers, and the screen."""

import json
import subprocess
import sys
from functools import cache

import msgspec
import pytest
from streaming import VOCABULARIES, vocabulary
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)
from transformers import PreTrainedTokenizerFast

from detokbench.cli import main
from detokbench.errors import ExitCode
from detokbench.report.audit_reading import read_audit
from detokbench.vocab import load_vocabulary
from detokbench.vocab.audit import audit
from detokbench.vocab.audit_properties import property_costs
from detokbench.vocab.audit_space import leading_space
from detokbench.vocab.audit_stops import stop_list
from detokbench.vocab.audit_structure import engine_choices, structure
from detokbench.vocab.byte_level import byte_to_char


def stop_facts(name, text):
    (facts,) = stop_list(vocabulary(name), [text]).stops
    return facts


def saved(tokenizer, folder, **options):
    """A folder of the user's; returns its name."""
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **options).save_pretrained(folder)
    return str(folder)


@cache
def shipped(name):
    """The facts of a shipped vocabulary, without stops."""
    return audit(vocabulary(name), name)


def looked_at(name, stops=()):
    return audit(load_vocabulary(name), name, stops)


def byte_level(bos_rule=True):
    """The 256 bytes, ``<s>`` 256, ``</s>`` 257 and the added token ``<think>`` 258."""
    tokenizer = Tokenizer(models.BPE({char: b for b, char in byte_to_char().items()}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.add_tokens([AddedToken("<think>", special=False)])
    if bos_rule:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 256)]
        )
    return tokenizer


def word_piece():
    words = ["[UNK]", "[CLS]", "[SEP]", "hello", "one", "two", "well", ".", "it", "'", "s"]
    words += ["fine", ",", "is", "n", "t", "?", "##x", "the"]
    tokenizer = Tokenizer(
        models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    return tokenizer


def metaspace(pre_tokenizer, **more_words):
    words = {"<unk>": 0, "▁one": 1, "▁two": 2, **more_words}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


# Ids of the shipped vocabularies


@pytest.mark.parametrize(
    ("name", "not_text", "genuine"),
    [
        ("llama-3", 1352, (5809, 10178, 24378, 30433, 58432, 60730, 83366)),
        ("tekken", 1435, (66122, 110200)),
        ("tekken-fast", 1435, (66122, 110200)),
        ("mistral-spm", 128, (29137,)),
        ("mistral-spm-fast", 128, (29137,)),
    ],
)
def test_ids_that_are_no_text_and_ids_with_a_genuine_replacement(name, not_text, genuine):
    facts = shipped(name).ids
    assert facts.from_bytes
    assert facts.not_text.count == not_text
    assert (facts.genuine.count, facts.genuine.examples) == (len(genuine), genuine)
    assert (facts.gaps.count, facts.beyond_length.count, facts.empty.count) == (0, 0, 0)
    assert (facts.length, facts.highest) == (vocabulary(name).size, vocabulary(name).size - 1)


def test_shared_texts_of_tekken_are_those_of_its_own_pieces(tekken):
    shared = shipped("tekken").ids.shared
    pieces = [tekken.tokenizer.inner.id_to_piece(i) for i in range(tekken.size)]
    counts = {}
    for piece in pieces:
        counts[piece] = counts.get(piece, 0) + 1
    assert shared.texts == sum(count > 1 for count in counts.values()) == 31
    assert shared.largest == max(counts.values()) == counts[shared.largest_text] == 606
    assert shared.byte_strings == 0


def test_byte_pieces_of_sentencepiece_share_even_their_bytes():
    assert shipped("mistral-spm-fast").ids.shared.byte_strings == 125


# Structure and the engines' choice


@pytest.mark.parametrize("name", VOCABULARIES)
def test_vllm_asks_for_the_class_and_sglang_for_is_fast(name):
    vllm, sglang = engine_choices(vocabulary(name))
    is_rust = vocabulary(name).is_rust
    assert vllm.path == ("fast" if is_rust else "slow")
    assert sglang.path == "batch-decode"
    assert ("row by row" in sglang.why) is not is_rust


def test_parts_in_a_few_words(spm_fast, llama3):
    assert structure(llama3).decoder == "ByteLevel"
    assert structure(llama3).pre_tokenizer == "Sequence(Split by regex, ByteLevel)"
    made = structure(spm_fast)
    assert made.decoder == "Sequence(Replace ▁→space, ByteFallback, Fuse, Strip 1)"
    assert made.normaliser == "Sequence(Prepend ▁, Replace space→▁)"
    assert (made.pre_tokenizer, made.family) == (None, "byte fallback")


def test_no_decoder_at_all(tmp_path):
    tokenizer = byte_level()
    tokenizer.decoder = None
    facts = looked_at(saved(tokenizer, tmp_path)).structure
    assert facts.decoder is None
    assert "no decoder" in facts.why_no_byte_table


# Leading spaces


def test_prepend_normaliser_marks_spaces_where_vllm_does_not_look(spm_fast):
    space = leading_space(spm_fast)
    assert (space.marker, space.seen_by_vllm) == ("▁", False)
    assert "normaliser" in space.where
    assert "Strip 1" in space.stripped_by
    assert (space.lost.alone, space.lost.in_context) == ("two", " two")


def test_byte_level_keeps_every_space(llama3):
    space = leading_space(llama3)
    assert (space.marker, space.stripped_by, space.lost) == (None, None, None)


@pytest.mark.parametrize(
    ("pre_tokenizer", "where"),
    [
        (pre_tokenizers.Metaspace(), "as the pre-tokenizer"),
        (
            pre_tokenizers.Sequence([pre_tokenizers.Digits(), pre_tokenizers.Metaspace()]),
            "Sequence",
        ),
    ],
)
def test_metaspace_bare_and_in_a_sequence(tmp_path, pre_tokenizer, where):
    name = saved(metaspace(pre_tokenizer), tmp_path, unk_token="<unk>")
    space = leading_space(load_vocabulary(name))
    assert (space.marker, space.seen_by_vllm) == ("▁", True)
    assert where in space.where
    assert space.stripped_by == "the Metaspace decoder"
    assert space.lost.ids == (2,)


# Gaps, added and special tokens


def test_gaps_and_ids_above_len(tmp_path):
    facts = looked_at(saved(metaspace(pre_tokenizers.Metaspace(), far=50), tmp_path))
    assert (facts.ids.length, facts.ids.highest) == (4, 50)
    assert (facts.ids.gaps.count, facts.ids.gaps.examples[0]) == (47, 3)
    assert facts.ids.beyond_length.examples == (50,)
    assert (facts.ids.padding_64, facts.ids.padding_128) == (13, 77)
    assert any("id 0 in place" in sentence for sentence in read_audit(facts))


def test_added_tokens_special_and_not(tmp_path):
    added = looked_at(saved(byte_level(), tmp_path, bos_token="<s>")).added
    assert (added.special.examples, added.not_special.examples) == ((256, 257), (258,))
    assert (added.inside.count, added.below.count, added.above.count) == (0, 0, 3)
    assert added.unlisted.examples == (257,)  # transformers was told of <s> only


def test_rust_knows_more_special_ids_than_transformers_lists():
    facts = shipped("llama-3")
    assert (facts.added.special.count, facts.added.unlisted.count) == (256, 254)
    assert facts.added.above.count == 256


# Encoding and chats

CHAT = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"


def test_a_template_that_renders_bos_doubles_it(tmp_path):
    template = "{{ bos_token }}" + CHAT
    name = saved(byte_level(), tmp_path, bos_token="<s>", chat_template=template)
    facts = looked_at(name)
    assert facts.special_tokens_added.at_start == (256,)
    assert facts.chat.first_ids[:2] == (256, ord("["))
    assert facts.chat.first_ids_with_special[:3] == (256, 256, ord("["))
    assert facts.chat.doubled == (256,)
    assert "id 256" in read_audit(facts)[0]


@pytest.mark.parametrize(("template", "bos_rule"), [(CHAT, True), ("<s>" + CHAT, False)])
def test_bos_from_one_side_only_is_not_doubled(tmp_path, template, bos_rule):
    name = saved(byte_level(bos_rule), tmp_path, bos_token="<s>", chat_template=template)
    facts = looked_at(name)
    assert facts.chat.first_ids_with_special[:2] == (256, ord("["))
    assert facts.chat.doubled == ()
    assert facts.special_tokens_added.makes_a_difference is bos_rule


def test_a_template_that_raises_is_a_finding_not_an_error(tmp_path):
    template = "{{ raise_exception('only tools here') }}"
    facts = looked_at(saved(byte_level(), tmp_path, chat_template=template))
    assert "only tools here" in facts.chat.error


@pytest.mark.parametrize("name", VOCABULARIES)
def test_shipped_vocabularies_have_no_chat_template(name):
    assert shipped(name).chat is None


def test_without_a_rule_for_bos_the_flag_makes_no_difference():
    added = shipped("llama-3").special_tokens_added
    assert (added.makes_a_difference, added.bos_id) == (False, 128_000)
    assert shipped("tekken").special_tokens_added.at_start == (1,)


def test_special_tokens_on_both_sides(tmp_path):
    added = looked_at(saved(word_piece(), tmp_path)).special_tokens_added
    assert (added.at_start, added.at_end) == ((1,), (2,))


# Clean-up and modes


def test_clean_up_is_measured_and_not_taken_from_the_flag(tmp_path):
    words = looked_at(saved(word_piece(), tmp_path / "w", clean_up_tokenization_spaces=True))
    assert words.clean_up.applied
    assert words.clean_up.decoded == "well. it's fine, isn't it?"
    assert any("takes spaces out" in sentence for sentence in read_audit(words))
    off = looked_at(saved(word_piece(), tmp_path / "o", clean_up_tokenization_spaces=False))
    assert (off.clean_up.applied, off.clean_up.applied_if_asked) == (False, True)


def test_a_decoder_may_clean_up_by_itself(tmp_path):
    tokenizer = word_piece()
    tokenizer.decoder = decoders.WordPiece(cleanup=True)
    clean = looked_at(saved(tokenizer, tmp_path)).clean_up
    assert clean.by_decoder
    assert " ." not in clean.decoded


def test_use_fast_false_is_tried_where_a_folder_is_given(tmp_path):
    mode = looked_at(saved(byte_level(), tmp_path)).slow_mode
    assert mode.tried
    assert mode.ignored is (mode.class_name == PreTrainedTokenizerFast.__name__)


def test_use_fast_false_cannot_be_tried_for_a_single_file(tmp_path):
    path = tmp_path / "tokenizer.json"
    byte_level().save(str(path))
    assert not looked_at(str(path)).slow_mode.tried


# A family without a table of bytes


def test_word_piece_is_looked_at_without_a_table_of_bytes(tmp_path):
    facts = looked_at(saved(word_piece(), tmp_path), ["THE", "the"])
    assert "WordPiece" in facts.structure.why_no_byte_table
    assert (facts.ids.from_bytes, facts.ids.genuine, facts.ids.shared.byte_strings) == (
        False,
        None,
        None,
    )
    upper, lower = facts.stops.stops
    assert (upper.match, lower.match) == ("unknown", "yes")
    assert "'the'" in upper.why
    assert (lower.canonical.ids, lower.longest, lower.longest_fits) == ((18,), None, None)


# Stop strings


def test_stop_string_of_three_ids_that_can_be_spelt_in_nine():
    stop = stop_facts("llama-3", "</answer>")
    assert (stop.hold_back_chars, stop.canonical.tokens, stop.window_tokens) == (8, 3, 4)
    assert (stop.shortest.tokens, stop.longest.tokens, stop.longest_fits) == (3, 9, False)
    assert (stop.match, stop.space_in_front, stop.special) == ("yes", False, {})
    decode = vocabulary("llama-3").decode
    assert decode(stop.shortest.ids) == decode(stop.longest.ids) == "</answer>"
    for i in stop.fused_after.examples:
        assert decode([i])[0] in "</answer>"
    assert all(decode([i])[-1] in "</answer" for i in stop.fused_before.examples)


def test_longest_spelling_is_found_in_no_window_and_the_canonical_in_each():
    from detokbench.stops.tail_window import TailWindow

    stop, loaded = stop_facts("llama-3", "</answer>"), vocabulary("llama-3")
    window = TailWindow(stop.window_tokens)
    before = loaded.encode("It is 4.")

    def is_seen(ids):
        outputs = [[*before, *ids[:end]] for end in range(1, len(ids) + 1)]
        return any("</answer>" in loaded.decode(window.ids(output)) for output in outputs)

    assert is_seen(stop.canonical.ids)
    assert not is_seen(stop.longest.ids)


def test_stop_that_is_a_special_token_needs_ordinary_ids():
    stop = stop_facts("llama-3", "<|eot_id|>")
    assert (stop.match, stop.special) == ("if spelt", {"<|eot_id|>": 128_009})
    assert stop.canonical.ids == (128_009,)
    assert "128009 writes nothing" in stop.why
    assert 128_009 not in stop.shortest.ids
    assert vocabulary("llama-3").decode(stop.shortest.ids) == "<|eot_id|>"


def test_stop_that_only_holds_a_special_token():
    assert stop_facts("llama-3", "x<|eot_id|>y").match == "if spelt"


def test_tool_calls_of_tekken_are_shown_whatever_the_flag():
    assert stop_facts("tekken", "[TOOL_CALLS]").match == "yes"
    assert stop_facts("tekken", "[INST]").match == "if spelt"


def test_stop_with_a_replacement_character_depends_on_the_path():
    stop = stop_facts("llama-3", "\ufffd")
    assert (stop.match, stop.shortest.ids, stop.longest.tokens) == ("by path", (5809,), 3)


def test_sentencepiece_puts_a_space_in_front_of_a_stop():
    stop = stop_facts("mistral-spm-fast", "</answer>")
    assert stop.space_in_front
    assert stop_facts("mistral-spm-fast", " END").space_in_front is False


def test_stop_inside_an_id_is_fused():
    assert 75_545 in stop_facts("llama-3", "ABCDEFGHIJKLMNO").fused.examples


def test_stop_that_no_ids_write(tmp_path):
    tokenizer = Tokenizer(models.BPE({"a": 0, "b": 1}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    facts = looked_at(saved(tokenizer, tmp_path), ["ab", "ac"])
    spelt, never = facts.stops.stops
    assert (spelt.match, spelt.longest.tokens) == ("yes", 2)
    assert (never.match, never.longest) == ("no", None)
    assert any("'ac' cannot match" in sentence for sentence in read_audit(facts))


def test_stops_together_are_the_longest_of_them(llama3):
    together = stop_list(llama3, ["</answer>", "\n\nQuestion number one:"])
    assert together.hold_back_chars == len("\n\nQuestion number one:") - 1
    assert together.window_tokens == max(stop.window_tokens for stop in together.stops)


# Properties


def test_properties_with_and_without_vllms_proxy(llama3, tekken):
    costs = {cost.name: cost for cost in property_costs(llama3)}
    assert list(costs) == ["len", "get_added_vocab", "all_special_ids", "is_fast"]
    assert [name for name, cost in costs.items() if not cost.is_cached] == ["get_added_vocab"]
    assert all(cost.uncached_s > 0 and cost.cached_s > 0 for cost in costs.values())
    assert all(cost.cached_s is None for cost in property_costs(tekken))


# The command


@pytest.fixture
def loaded_once(monkeypatch):
    """Shipped vocabularies are loaded once for all tests."""
    monkeypatch.setattr(
        "detokbench.vocab.registry.load_vocabulary", lambda name, *_: vocabulary(name)
    )


@pytest.mark.parametrize("name", VOCABULARIES)
def test_the_screen_says_what_matters_in_five_lines_at_most(capsys, monkeypatch, loaded_once, name):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["audit", name, "--stop", "</answer>"]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"audit · {name}: ")
    assert all(len(line) <= 80 for line in lines)
    assert 3 <= sum(line.startswith("• ") for line in lines) <= 5


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_no_figure_is_cut_at_any_width(capsys, monkeypatch, loaded_once, columns):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["audit", "llama-3", "--stop", "</answer>", "--stop", "[b]x[/b]"]) == ExitCode.OK
    printed = capsys.readouterr().out
    for figure in ("1,352", "58432", "128255", "3–9", "get_added_vocab"):
        assert figure in "".join(printed.split()), figure
    assert "[b]x[/b]" in printed


def test_json_has_the_same_facts(capsys, loaded_once):
    assert main(["audit", "llama-3", "--stop", "</answer>", "--json"]) == ExitCode.OK
    facts = json.loads(capsys.readouterr().out)
    assert facts["ids"]["not_text"]["count"] == 1352
    assert facts["engines"][0]["path"] == "fast"
    assert facts["stops"]["stops"][0]["longest"]["tokens"] == 9


def test_json_can_be_read_back_into_its_types(llama3):
    from detokbench.vocab.audit import Audit

    facts = audit(llama3, "llama-3", ["</answer>"])
    assert msgspec.json.decode(msgspec.json.encode(facts), type=Audit) == facts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "lama-3"], "did you mean 'llama-3'"),
        (["audit", "llama-3", "--stop", ""], "--stop: an empty stop string"),
        (["audit", "llama-3", "--stop", "\udcff"], "--stop: the text is not valid UTF-8"),
        (["audit"], "TOKENIZER"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(capsys, arguments, message):
    assert main(arguments) == ExitCode.USAGE
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", 1)
    assert message in printed.err


def test_a_tokenizer_that_cannot_be_loaded_is_exit_code_5(capsys, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    assert main(["audit", str(path)]) == ExitCode.BROKEN_SETUP
    assert "not a tokenizer.json" in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_error():
    command = f"{sys.executable} -m detokbench audit mistral-spm-fast | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("audit · mistral-spm-fast: 32,000 ids")
