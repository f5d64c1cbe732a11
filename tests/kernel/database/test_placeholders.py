"""`$1` becomes `?1` where it is a placeholder, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.database.sqlite_connection import numbered

# Parts of SQL that must not change, whatever they contain.
_inside = st.text(alphabet="a$1?2-/* \n", max_size=8)
_kept = st.one_of(
    _inside.map(lambda text: "'" + text + "'"),
    _inside.map(lambda text: "'it''s " + text + "'"),
    _inside.map(lambda text: '"' + text + '"'),
    _inside.map(lambda text: "--" + text.replace("\n", "") + "\n"),
    _inside.map(lambda text: "/*" + text.replace("*", "") + "*/"),
    st.sampled_from(["SELECT", "a$1", "a1$22", "=", "(", ")", ",", "<>", " - ", " / ", "\n", "0.5"]),
)
_placeholder = st.integers(1, 99)


@given(st.lists(st.one_of(_kept, _placeholder), max_size=20))
def test_only_placeholders_change(pieces: list[str | int]) -> None:
    given_text = " ".join(f"${piece}" if isinstance(piece, int) else piece for piece in pieces)
    expected_text = " ".join(f"?{piece}" if isinstance(piece, int) else piece for piece in pieces)

    assert numbered(given_text) == expected_text


@given(st.text(alphabet="'\"$1a-/* \n?", max_size=30))
def test_any_text_keeps_its_length(text: str) -> None:
    assert len(numbered(text)) == len(text)


@pytest.mark.parametrize(
    ("statement", "expected_text"),
    [
        ("SELECT $1, $2", "SELECT ?1, ?2"),
        ("SELECT $12$1", "SELECT ?12?1"),
        ("SELECT '$1' || $1", "SELECT '$1' || ?1"),
        ("SELECT a FROM t -- $1\nWHERE a = $1", "SELECT a FROM t -- $1\nWHERE a = ?1"),
        ("SELECT a-$1", "SELECT a-?1"),
    ],
)
def test_examples(statement: str, expected_text: str) -> None:
    assert numbered(statement) == expected_text
