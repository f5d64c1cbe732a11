"""Cursors are read exactly as they were written, and any other text is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.http import cursor
from countersign.kernel.http.cursor import InvalidCursor, Position
from countersign.kernel.security.encryption import signer_for

SIGNER = signer_for(b"k" * 32, "cursor")
OTHER = signer_for(b"o" * 32, "cursor")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
POSITIONS = st.builds(
    Position,
    st.just("products"),
    st.lists(TEXTS, max_size=6),
    st.lists(st.one_of(TEXTS, st.integers(-(2**53), 2**53)), max_size=3),
)


@given(POSITIONS)
def test_a_written_cursor_reads_back(position: Position) -> None:
    text = cursor.write(SIGNER, position)

    assert cursor.read(SIGNER, text, "products") == position
    assert all(letter.isascii() and (letter.isalnum() or letter in "_.~-") for letter in text)


@given(POSITIONS, st.data())
def test_a_changed_cursor_is_refused(position: Position, data: st.DataObject) -> None:
    text = cursor.write(SIGNER, position)
    place = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from("ABCxyz019-_=+/ é"))
    changed_text = text[:place] + letter + text[place + 1 :]
    if changed_text == text:
        return

    with pytest.raises(InvalidCursor):
        cursor.read(SIGNER, changed_text, "products")


@given(st.text(max_size=200))
def test_no_arbitrary_text_is_accepted_as_a_cursor(text: str) -> None:
    with pytest.raises(InvalidCursor):
        cursor.read(SIGNER, text, "products")


def test_a_cursor_of_another_key_or_another_list_is_refused() -> None:
    text = cursor.write(SIGNER, Position("products", [], ["a", "b"]))

    with pytest.raises(InvalidCursor):
        cursor.read(OTHER, text, "products")
    with pytest.raises(InvalidCursor, match="another list"):
        cursor.read(SIGNER, text, "library")


def test_an_endless_cursor_is_refused_unread() -> None:
    with pytest.raises(InvalidCursor, match="longer"):
        cursor.read(SIGNER, "A" * 5000, "products")
