"""Texts of any length that have made parsers slow."""

from collections.abc import Callable, Mapping

Make = Callable[[int], str]


def repeated(unit: str, end: str = "") -> Make:
    """Repetitions of the unit, so that the whole has the length."""
    return lambda size: (unit * (size // len(unit) + 1))[: max(0, size - len(end))] + end


def marks(size: int) -> str:
    """A letter with marks in the order that costs Unicode normalisation the most sorting."""
    return "a" + "\u0301" * (size // 2) + "\u0327" * (size - size // 2 - 1)


TEXTS: Mapping[str, Make] = {
    "one letter": repeated("a"),
    "digits": repeated("1"),
    "blanks": repeated(" ", "."),
    "lines": repeated("\n"),
    "combining marks": marks,
    "wide letters": repeated("ﷺ"),
    "sharp s": repeated("ß"),
    "words": repeated("ab "),
    "commas": repeated("a,"),
    "quotes": repeated('"'),
    "escapes": repeated("%41"),
    "tokens": repeated("EMAIL_1 "),
    "near tokens": repeated("email-1 "),
    "dots": repeated("a."),
    "slashes": repeated("a/"),
    "at signs": repeated("a@"),
    "dashes": repeated("a-", "a"),
    "brackets": repeated("["),
    "braces": repeated("{"),
    "addresses": repeated("http://"),
    "headings": repeated("# "),
    "links": repeated("[a]("),
    "emphasis": repeated("*a_"),
    "places": repeated(" - at `$"),
}
