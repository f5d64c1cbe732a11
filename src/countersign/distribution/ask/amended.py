"""Requests whose last part says more of what the first asked for: "They must be free", "Free ones only"."""

import re
from collections.abc import Iterator

_QUALIFY = re.compile(
    r"(?i)(?:and )?(?:which|what)(?: of (?:them|those|these))?(?: ones?| \w+)? (?:qualify|qualifies|fit|fits|"
    r"match|matches|"
    r"(?:are|is) (?:there|these|those|they|it)|would (?:that|those|these|they) be|do you have|have you got|can you "
    r"(?:offer|recommend|suggest|name)|comes? to mind|meets? (?:that|this)|do that)"
)
_SHOULD = re.compile(
    r"(?i)(?:and )?(?:they|these|those|it|that|this|(?:all|both|each) of them) (?:all |both )?(?:should|must|"
    r"have to|has to|"
    r"need to|needs to|ought to|would have to|shall|need)(?: also| all)? (?P<told>.+)"
)
_ONES_ONLY = re.compile(
    r"(?i)(?:(?:and |but )?(?:only|just) )?(?:the )?(?P<told>[\w -]{2,40}?) ones?(?: only| "
    r"please)*"
)
_WHICH = re.compile(
    r"(?i)(?:and |so |but )?(?:which|what|how many) (?:[\w-]+ ){0,2}[\w-]+(?: are (?:there|"
    r"those|that|these))?"
)


def amended(before: str, last: str, *, is_asker: bool) -> Iterator[str]:
    """What was asked for before, with what the last part adds to it."""
    if _QUALIFY.fullmatch(last):
        yield before
    if found := _SHOULD.fullmatch(last):
        told = re.sub(r"(?i)^be\b", "are", found["told"])
        yield f"{before} that {told}"
    if found := _ONES_ONLY.fullmatch(last):
        yield f"{before} that are {found['told']}"
        yield f"{found['told']} {before}"
    if _WHICH.fullmatch(last) and not is_asker:
        for joint in ("", "that are ", "with ", "that have "):
            yield f"{last} {joint}{before}"
