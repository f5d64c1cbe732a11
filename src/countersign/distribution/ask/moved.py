"""Questions whose first part belongs to their end: "In 2025, which apps …?", "Of the tools, which has …?"."""

import re
from collections.abc import Iterator

from countersign.distribution.ask.dates import MONTHS, WEEKDAYS

_TIME = re.compile(
    r"(?i)(?:in|during|since|between|from|before|after|on|over|within|for|until|till|up to|throughout|this|last|as of|"
    r"prior to|by|past|yesterday|today|not since|through|(?:the )?(?:last|past|first|second))\b.*"
)
_SAID = re.compile(
    rf"(?i)\d|\b(?:{'|'.join((*MONTHS, *WEEKDAYS))}|days?|weeks?|months?|years?|quarter|half|today|yesterday|halloween|"
    r"christmas|hours?|fortnight)\b"
)
_AMONG = re.compile(
    r"(?i)(?:among|amongst|of|out of|from(?: among)?)(?: all)? (?P<of>(?:the |your |these |those )?.+)"
)
_WHICH = re.compile(
    r"(?i)(?:which|what)(?: (?:one|ones|product|release|version|of (?:them|those|these)|of the (?:two|three)))?"
    r"\s+(?P<rest>.+)"
)
_HOW_MANY = re.compile(r"(?i)how many(?: of (?:them|those|these))?\s+(?P<rest>.+)")
_ARTICLE = re.compile(r"(?i)^(?:the|your|these|those|all|all the) ")


def moved(front: str, rest: str) -> Iterator[str]:
    """The question with what is said first where most people say it."""
    if _TIME.fullmatch(front) and _SAID.search(front):
        yield f"{rest} {front}"
    elif found := _AMONG.fullmatch(front):
        yield from _of(found["of"], rest)


def _of(those: str, rest: str) -> Iterator[str]:
    if asked := _WHICH.fullmatch(rest):
        yield f"which of {those} {asked['rest']}"
        yield f"which {_ARTICLE.sub('', those)} {asked['rest']}"
        yield f"which of {those} {_turned(asked['rest'])}"
    if asked := _HOW_MANY.fullmatch(rest):
        yield f"how many of {those} {asked['rest']}"


def _turned(rest: str) -> str:
    """ "can I open in the browser" as "run in the browser": what can be done with them they can do."""
    return re.sub(
        r"(?i)^(?:can|could|may|do|would|will) (?:i|we|you|one) (?:open|use|run|play|install|start|get|have)\b",
        "run",
        rest,
    )
