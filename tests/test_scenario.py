import pytest
from streaming import assert_error

from detokbench.errors import DetokbenchError, ExitCode
from detokbench.paths import path_names
from detokbench.vocab import known_vocabularies
from detokbench.workload.scenario import (
    DEFAULT_SCENARIO,
    FlagsTable,
    load_scenario,
    override,
    scenario_names,
)
from detokbench.workload.texts import load_text, paragraphs, script_names, text_names

WHOLE = 'title = "T"\nvocabulary = "llama-3"\ntexts = ["english"]\n'


@pytest.fixture
def written(tmp_path):
    """Writes a scenario file and returns its path as the user would type it."""

    def write(content: str) -> str:
        path = tmp_path / "mine.toml"
        path.write_text(content, encoding="utf-8")
        return str(path)

    return write


@pytest.mark.parametrize("name", scenario_names())
def test_shipped_scenario_loads_and_its_texts_and_vocabulary_exist(name):
    scenario, folder = load_scenario(name)
    assert scenario.name == name
    assert scenario.title
    assert scenario.vocabulary in [known.name for known in known_vocabularies()]
    assert scenario.batches == sorted(scenario.batches)
    for text in scenario.texts:
        assert load_text(text, folder).strip()


def test_default_scenario_is_shipped_with_its_values():
    scenario, _ = load_scenario(DEFAULT_SCENARIO)
    assert scenario.vocabulary == "llama-3"
    assert scenario.batches == [1, 32, 256]
    assert (scenario.prompt_len, scenario.ids_per_step) == (128, 1)
    assert scenario.admit_prompt_lens == [128, 1024, 8192, 32768]


def test_what_a_file_leaves_out_has_a_default(written):
    scenario, _ = load_scenario(written(WHOLE))
    assert scenario.name == "mine"
    assert (scenario.prompt_len, scenario.ids_per_step, scenario.stop) == (128, 1, [])
    assert scenario.flags == FlagsTable(True, True)


def test_numbers_may_be_written_as_on_the_command_line(written):
    scenario, _ = load_scenario(
        written(
            WHOLE + 'prompt_len = "1k"\nbatch = [1, 8]\nids_per_step = 3\n'
            'admit_prompt_len = "1k..4k"\n[flags]\nskip_special_tokens = false\n'
        )
    )
    assert scenario.prompt_len == 1024
    assert scenario.batches == [1, 8]
    assert scenario.ids_per_step == 3
    assert scenario.admit_prompt_lens == [1024, 2048, 4096]
    assert scenario.flags == FlagsTable(False, True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (WHOLE + "bacth = 4\n", ["unknown field bacth"]),
        (WHOLE + "[flags]\nskip = true\n", ["flags: ", "unknown field skip"]),
        (WHOLE + "prompt_len = 1.5\n", ["prompt_len: ", "got float"]),
        (WHOLE + "batch = true\n", ["batch: ", "got bool"]),
        (WHOLE + 'batch = [1, "2"]\n', ["batch[", "got str"]),
        (WHOLE + 'stop = "END"\n', ["stop: ", "got str"]),
        (WHOLE + '[flags]\nskip_special_tokens = "yes"\n', ["flags.skip_special_tokens: "]),
        (WHOLE + 'stop = ["END", ""]\n', ["stop[1]: ", "empty stop string"]),
        (WHOLE + 'batch = "8..1"\n', ["batch: ", "runs backwards"]),
        (WHOLE + "batch = [0]\n", ["batch: ", "'0'"]),
        (WHOLE + "batch = []\n", ["batch: ", "empty part"]),
        (WHOLE + "ids_per_step = 0\n", ["ids_per_step: ", "between 1 and"]),
        (WHOLE + 'prompt_len = "many"\n', ["prompt_len: ", "'many'"]),
        (WHOLE + 'admit_prompt_len = "1,"\n', ["admit_prompt_len: ", "empty part"]),
        (WHOLE.replace('["english"]', "[]"), ["texts: ", "at least one"]),
        (WHOLE.replace('"english"', "5"), ["texts[", "got int"]),
        (WHOLE.replace('title = "T"\n', ""), ["missing required field title"]),
        ("title = \n", ["not TOML", "line 1"]),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(content, says, written):
    with pytest.raises(DetokbenchError) as caught:
        load_scenario(written(content))
    assert_error(caught, ExitCode.USAGE, "scenario mine.toml", *says)


def test_unknown_scenario_is_a_usage_error_with_the_nearest_name():
    with pytest.raises(DetokbenchError) as caught:
        load_scenario("lama3-chat")
    assert_error(caught, ExitCode.USAGE, "'lama3-chat'", "did you mean 'llama3-chat'")


def test_scenario_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"title = '\xff'")
    with pytest.raises(DetokbenchError) as caught:
        load_scenario(str(path))
    assert_error(caught, ExitCode.USAGE, "mine.toml", "UTF-8")


def test_override_changes_only_what_is_given():
    scenario, _ = load_scenario(DEFAULT_SCENARIO)
    assert override(scenario) == scenario
    changed = override(scenario, vocabulary="tekken", batches=[2], prompt_len=5, ids_per_step=3)
    assert (changed.vocabulary, changed.batches) == ("tekken", [2])
    assert (changed.prompt_len, changed.ids_per_step) == (5, 3)
    assert (changed.texts, changed.admit_prompt_lens, changed.name) == (
        scenario.texts,
        scenario.admit_prompt_lens,
        scenario.name,
    )
    assert scenario.batches == [1, 32, 256]


# Texts


def test_text_beside_the_scenario_file(written, tmp_path):
    (tmp_path / "mine.txt").write_text("Größe\n", encoding="utf-8")
    scenario, folder = load_scenario(written(WHOLE.replace("english", "mine.txt")))
    assert folder == tmp_path
    assert load_text(scenario.texts[0], folder) == "Größe\n"


def test_unknown_text_is_a_usage_error_with_the_nearest_name(tmp_path):
    with pytest.raises(DetokbenchError) as caught:
        load_text("burmes", tmp_path)
    assert_error(caught, ExitCode.USAGE, "'burmes'", "did you mean 'burmese'")


def test_empty_text_and_text_in_another_encoding_are_refused(tmp_path):
    (tmp_path / "empty.txt").write_text(" \n\n")
    (tmp_path / "latin.txt").write_bytes("Größe".encode("latin-1"))
    with pytest.raises(DetokbenchError) as caught:
        load_text("empty.txt", tmp_path)
    assert_error(caught, ExitCode.USAGE, "empty.txt is empty")
    with pytest.raises(DetokbenchError) as caught:
        load_text("latin.txt", tmp_path)
    assert_error(caught, ExitCode.BROKEN_SETUP, "latin.txt")


def test_shipped_texts_are_whole_and_named_apart_from_paths():
    assert set(script_names()) < set(text_names())
    assert not set(text_names()) & set(path_names())
    for name in text_names():
        assert "\ufffd" not in load_text(name)


def test_paragraphs_end_with_their_blank_line_and_empty_ones_are_left_out():
    assert paragraphs("a\nb\n\n\n\nc") == ["a\nb\n\n", "c\n\n"]
