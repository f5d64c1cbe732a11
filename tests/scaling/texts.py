"""Texts of any length that have made parsers slow."""

from collections.abc import Callable, Mapping

Make = Callable[[int], str]


def repeat_unit(unit: str, end: str = "") -> Make:
    """Return repetitions of the unit with this total length."""
    return lambda size: (unit * (size // len(unit) + 1))[: max(0, size - len(end))] + end


def marks(size: int) -> str:
    """Return a letter with marks, in the order that costs Unicode normalisation the most sorting."""
    return "a" + "\u0301" * (size // 2) + "\u0327" * (size - size // 2 - 1)


TEXTS: Mapping[str, Make] = {
    "one letter": repeat_unit("a"),
    "digits": repeat_unit("1"),
    "blanks": repeat_unit(" ", "."),
    "lines": repeat_unit("\n"),
    "combining marks": marks,
    "wide letters": repeat_unit("ﷺ"),
    "sharp s": repeat_unit("ß"),
    "words": repeat_unit("ab "),
    "commas": repeat_unit("a,"),
    "quotes": repeat_unit('"'),
    "escapes": repeat_unit("%41"),
    "tokens": repeat_unit("EMAIL_1 "),
    "near tokens": repeat_unit("email-1 "),
    "dots": repeat_unit("a."),
    "slashes": repeat_unit("a/"),
    "at signs": repeat_unit("a@"),
    "dashes": repeat_unit("a-", "a"),
    "brackets": repeat_unit("["),
    "braces": repeat_unit("{"),
    "addresses": repeat_unit("http://"),
    "headings": repeat_unit("# "),
    "links": repeat_unit("[a]("),
    "emphasis": repeat_unit("*a_"),
    "places": repeat_unit(" - at `$"),
}
