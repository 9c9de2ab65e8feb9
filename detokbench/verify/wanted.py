"""What a command line asks ``verify`` for."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from detokbench.errors import usage_error
from detokbench.verify.laws import SINGLE_STREAM_LAWS, Law
from detokbench.verify.run import Wanted
from detokbench.vocab.registry import check_vocabulary_name, known_vocabularies
from detokbench.workload.cases import Case, load_cases, shipped_cases

CLAIM_TO_BE_RIGHT = ("byte-table",)
_FUZZ_BY_DEFAULT = 1500


def required_paths(paths: Sequence[str], named: Sequence[str]) -> tuple[str, ...]:
    """Paths that must keep every law: ours, if it is run, and those named.

    Raises a usage error for a named one that is not run.
    """
    for name in named:
        if name not in paths:
            raise usage_error(f"--require: '{name}' is not among the paths to check")
    ours = [name for name in CLAIM_TO_BE_RIGHT if name in paths]
    return tuple(dict.fromkeys([*ours, *named]))


def wanted_from(
    paths: tuple[str, ...],
    vocabularies: Sequence[str],
    case_files: Sequence[str],
    fuzz: int | None,
    laws: Sequence[Law],
    seed: int,
    trust_remote_code: bool,
) -> Wanted:
    """The run that is asked for.

    By default the shipped texts, cases and some random streams; cases of the user's or a number of
    random streams take their place. Raises a usage error for what cannot be run.
    """
    for name in vocabularies:
        check_vocabulary_name(name)
    by_default = not case_files and fuzz is None
    cases = [case for file in case_files for case in load_cases(file)]
    for name in {case.vocabulary for case in cases}:
        check_vocabulary_name(name)
    chosen = tuple(dict.fromkeys(vocabularies)) or _vocabularies(cases, fuzz, by_default)
    # Rows and work have streams of their own, which are no part of the user's question.
    asked = frozenset(laws or (Law if by_default else SINGLE_STREAM_LAWS))
    _refuse_what_would_not_run(cases, chosen, asked, fuzz)
    if not asked & SINGLE_STREAM_LAWS:
        fuzz = 0
    return Wanted(
        vocabularies=chosen,
        paths=paths,
        laws=asked,
        cases=tuple(shipped_cases() if by_default else cases),
        texts=by_default,
        fuzz=_FUZZ_BY_DEFAULT if by_default and fuzz is None else fuzz or 0,
        seed=seed,
        trust_remote_code=trust_remote_code,
    )


def _refuse_what_would_not_run(
    cases: Sequence[Case], vocabularies: Sequence[str], laws: Collection[Law], fuzz: int | None
) -> None:
    for option, is_given in (("--cases", bool(cases)), ("--fuzz", fuzz is not None)):
        if is_given and SINGLE_STREAM_LAWS.isdisjoint(laws):
            raise usage_error(f"{option}: {' and '.join(laws)} are not judged by single streams")
    if cases and not any(case.vocabulary in vocabularies for case in cases):
        raise usage_error(
            f"--cases: none of them is on {', '.join(vocabularies)}; the first is on "
            f"{cases[0].vocabulary}"
        )


def _vocabularies(cases: Sequence[Case], fuzz: int | None, by_default: bool) -> tuple[str, ...]:
    """Those of the cases, or all that are shipped."""
    if not by_default and fuzz is None:
        return tuple(dict.fromkeys(case.vocabulary for case in cases))
    return tuple(vocabulary.name for vocabulary in known_vocabularies())
