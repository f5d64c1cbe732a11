"""Archives that other projects made to test their readers. outcomes.json records which archives are accepted, and which
rule refuses each other archive. Accepted archives have the same contents for every other reader. Sources and licences:
README.md."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from countersign.archives.limits import Profile
from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from tests.archives import peers
from tests.archives.cases import LIMITS, PROFILES, drain, rule_of
from tests.archives.good import Tree

CORPUS = Path(__file__).with_name("corpus")
OUTCOMES: dict[str, tuple[str, str]] = json.loads((CORPUS / "outcomes.json").read_text())
"""Maps each file to its outcome with each profile: `taken`, or the rule of the refusal."""


def outcome(data: bytes, profile: Profile) -> tuple[str, Tree]:
    """Return the outcome with the profile, and the tree when it is accepted."""
    try:
        entries = drain(data, replace(LIMITS, profile=profile))
    except (ArchiveRefused, ArchiveUnknown) as error:
        return rule_of(error), {}
    return "taken", {path: (kind, content) for path, (kind, _, content) in entries.items()}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("file", OUTCOMES)
def test_an_archive_of_a_corpus_is_dealt_with_as_written_down(file: str, profile: Profile) -> None:
    data = (CORPUS / file).read_bytes()

    outcome_text, tree = outcome(data, profile)

    assert outcome_text == OUTCOMES[file][PROFILES.index(profile)]
    if outcome_text == "taken":
        assert peers.by_library(data) == tree


TAKEN = [file for file, outcomes in OUTCOMES.items() if "taken" in outcomes]


@pytest.mark.parametrize("program", peers.PROGRAMS)
@pytest.mark.parametrize("file", TAKEN)
def test_accepted_corpus_archives_unpack_to_the_same_files_as_with_other_programs(file: str, program: str) -> None:
    data = (CORPUS / file).read_bytes()
    program_tree = peers.by_program(program, data)
    if program_tree is None:
        pytest.skip("for another format, or not installed")

    _, tree = outcome(data, "compatible")

    assert peers.compose_paths(program_tree) == peers.compose_paths(peers.with_implied(tree))


def test_every_file_of_the_corpora_is_written_down() -> None:
    files = {path.relative_to(CORPUS).as_posix() for path in CORPUS.rglob("*") if path.is_file()}

    assert files - {"outcomes.json", "libarchive/COPYING"} == OUTCOMES.keys()
