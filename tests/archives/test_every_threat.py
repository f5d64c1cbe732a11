"""The list of threats, and a check that each is tested in each format that can have it."""

import pytest

from tests.archives import (
    doubtful_tars,
    doubtful_zips,
    hostile_compression,
    hostile_tar_links,
    hostile_tars,
    hostile_zips,
    zip_bombs,
)
from tests.archives.cases import ArchiveCase
from tests.archives.names import ON_DISK
from tests.archives.test_hostile_folder import HOSTILE

ZIP, TAR, COMPRESSED, FOLDER = "zip", "tar", "compressed", "folder"

THREATS: dict[str, set[str]] = {
    "ratio bomb": {ZIP, TAR, COMPRESSED},
    "lying sizes": {ZIP, TAR, COMPRESSED},
    "overlap": {ZIP},
    "nested archives": {ZIP, TAR, COMPRESSED},
    "entry count": {ZIP, TAR},
    "huge directory": {ZIP, TAR},
    "deep paths": {ZIP, TAR, FOLDER},
    "absolute": {ZIP, TAR},
    "dot dot": {ZIP, TAR},
    "backslash": {ZIP, TAR, FOLDER},
    "drive": {ZIP, TAR, FOLDER},
    "unc": {ZIP, TAR},
    "symlink escape": {ZIP, TAR, FOLDER},
    "hardlink escape": {TAR},
    "write through a link": {ZIP, TAR},
    "chains past PATH_MAX": {ZIP, TAR},
    "device nodes": {ZIP, TAR, FOLDER},
    "fifo": {ZIP, TAR, FOLDER},
    "set id and sticky": {ZIP, TAR, FOLDER},
    "mode 000": {ZIP, TAR, FOLDER},
    "case collisions": {ZIP, TAR, FOLDER},
    "nfc and nfd": {ZIP, TAR, FOLDER},
    "reserved names": {ZIP, TAR, FOLDER},
    "trailing dot and space": {ZIP, TAR, FOLDER},
    "alternate streams": {ZIP, TAR, FOLDER},
    "control characters": {ZIP, TAR, FOLDER},
    "direction override": {ZIP, TAR, FOLDER},
    "duplicates": {ZIP, TAR},
    "file and folder": {ZIP, TAR},
    "local and central": {ZIP, TAR},
    "descriptor lies": {ZIP},
    "zip64 confusion": {ZIP},
    "unicode path": {ZIP},
    "bytes before": {ZIP, TAR, COMPRESSED},
    "bytes after": {ZIP, TAR, COMPRESSED},
    "polyglots": {ZIP, TAR},
    "encrypted": {ZIP},
    "pax override": {TAR},
    "pax and ustar sizes": {TAR},
    "sparse": {TAR},
    "negative offsets": {TAR},
    "link with payload": {ZIP, TAR},
    "windows": {COMPRESSED},
    "timeout": {ZIP, TAR, COMPRESSED},
}
"""Each threat, and the formats in which it can be tested. "local and central" includes tar headers that state a value
twice; the "odd methods" of zip are an addition to the list."""

TRIED: dict[str, list[ArchiveCase]] = {
    ZIP: [*zip_bombs.CASES, *hostile_zips.CASES, *doubtful_zips.CASES],
    TAR: [*hostile_tars.CASES, *hostile_tar_links.CASES, *doubtful_tars.CASES],
    COMPRESSED: hostile_compression.CASES,
}


@pytest.mark.parametrize("threat", THREATS)
def test_a_threat_is_tried_in_each_format_that_can_have_it(threat: str) -> None:
    forms_tried = {form for form, cases in TRIED.items() if any(case.threat == threat for case in cases)}
    if threat in {item.threat for item in ON_DISK} | {threat for threat, _, _ in HOSTILE.values()}:
        forms_tried.add(FOLDER)

    if threat == "nested archives":
        forms_tried |= {ZIP, TAR}  # accepted as bytes: see test_nested.py

    assert forms_tried >= THREATS[threat]


def test_nothing_is_tried_that_is_not_on_the_list() -> None:
    known_threats = THREATS.keys() | {"odd methods"}

    assert {case.threat for cases in TRIED.values() for case in cases} <= known_threats


@pytest.mark.parametrize(("form", "least"), [(ZIP, 60), (TAR, 70)])
def test_the_corpus_contains_many_tricks(form: str, least: int) -> None:
    assert len(TRIED[form]) >= least
