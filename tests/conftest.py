import pytest
import streaming
from hypothesis import settings

from detokbench.vocab import Vocabulary

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def llama3() -> Vocabulary:
    return streaming.vocabulary("llama-3")


@pytest.fixture(scope="session")
def tekken() -> Vocabulary:
    return streaming.vocabulary("tekken")


@pytest.fixture(scope="session")
def tekken_fast() -> Vocabulary:
    return streaming.vocabulary("tekken-fast")


@pytest.fixture(scope="session")
def spm() -> Vocabulary:
    return streaming.vocabulary("mistral-spm")


@pytest.fixture(scope="session")
def spm_fast() -> Vocabulary:
    return streaming.vocabulary("mistral-spm-fast")
