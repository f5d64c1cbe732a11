"""Entity tags, If-None-Match and If-Match."""

import pytest

from countersign.kernel.http.response import PreconditionFailed, etag_of, if_none_match_matches, require_match


def test_a_tag_is_strong_and_depends_on_the_bytes() -> None:
    assert etag_of(b"a") == etag_of(b"a") != etag_of(b"b")
    assert etag_of(b"a")[0] == etag_of(b"a")[-1] == '"'


@pytest.mark.parametrize("header", ['"t"', 'W/"t"', '"x", "t"', '"x",W/"t"', "*", " * "])
def test_if_none_match_compares_weakly(header: str) -> None:
    assert if_none_match_matches(header, '"t"')


@pytest.mark.parametrize("header", [None, "", '"x"', "t", '"T"'])
def test_another_tag_matches_nothing(header: str | None) -> None:
    assert not if_none_match_matches(header, '"t"')


@pytest.mark.parametrize("header", [None, "*", '"t"', '"x", "t"'])
def test_if_match_accepts_the_current_tag(header: str | None) -> None:
    require_match(header, '"t"')


@pytest.mark.parametrize("header", ['"x"', 'W/"t"', "t", ""])
def test_if_match_compares_strongly(header: str) -> None:
    with pytest.raises(PreconditionFailed):
        require_match(header, '"t"')
