"""The summary of a product from its description: the first sentence as plain, short text, computed quickly for any
text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countersign.store.catalog.summaries import MAX_SUMMARY, first_sentence

SUMMARIES = (
    (None, None),
    ("", None),
    (" \n\n ", None),
    ("Keep a lighthouse alive.", "Keep a lighthouse alive."),
    ("No full stop", "No full stop"),
    ("First sentence. Second sentence.", "First sentence."),
    ("Version 2.0 of the tool (really). Next.", "Version 2.0 of the tool (really)."),
    ("Works with files, e.g. maps. More.", "Works with files, e.g. maps."),
    ("One line\nand another. End.", "One line and another."),
    ("# Heading\n\nThe **bold** [link](https://a.example/x) to `code`. More.", "The bold link to code."),
    ("Heading\n=======\n\nText _with_ ~~many~~ ***marks***!", "Text with many marks!"),
    ("![A picture](a.png)\n\nText after the picture.", "Text after the picture."),
    ("```\ncode\n```\n\nText after code.", "Text after code."),
    ("| a | b |\n| - | - |\n\nAfter the table.", "After the table."),
    ("- [x] First item.\n- Second item.", "First item."),
    ("> Quoted &amp; <b>marked</b> text.", "Quoted & marked text."),
    ("A name_with_underscores, and 2 * 3 * 4.", "A name_with_underscores, and 2 * 3 * 4."),
    ("これはテストです。次の文。", "これはテストです。"),
    (r"Not \*bold\* at all.", "Not *bold* at all."),
)


@pytest.mark.parametrize(("description", "summary"), SUMMARIES)
def test_the_summary_is_the_first_sentence_without_markup(description: str | None, summary: str | None) -> None:
    assert first_sentence(description) == summary


def test_a_long_sentence_is_cut_between_words() -> None:
    cut_sentence = first_sentence("word " * 60) or ""

    assert cut_sentence == " ".join(["word"] * 28) + "…"
    assert len(first_sentence("a" * 300) or "") == MAX_SUMMARY


@settings(max_examples=200, deadline=2_000)
@given(st.text(st.sampled_from("ab *_~`#[]()!<>-.\n\\&;|=1"), max_size=4_500) | st.text(max_size=300))
def test_the_summary_of_any_text_is_one_short_line(text: str) -> None:
    summary = first_sentence(text)

    assert summary is None or (summary.strip() and len(summary) <= MAX_SUMMARY and "\n" not in summary)


@pytest.mark.parametrize("piece", ["*", "[", "![", "<!--", "_a", "```\n", "#", "- ", "> ", "`", "=\n", " ", "*a ", "&"])
def test_no_markup_takes_long(piece: str) -> None:
    first_sentence(piece * (20_000 // len(piece)))
