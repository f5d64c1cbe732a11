"""Several values in one phrase: "a, b and c", "either a or b", "neither a nor b", and what denies them."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from countersign.distribution.ask.templates import Reading, Slot, match
from countersign.distribution.ask.told import AnyCondition, Either, either, every, opposite
from countersign.distribution.ask.vocabulary import phrases
from countersign.distribution.ask.wordlists import said

MOST_WAYS = 40


class Values(NamedTuple):
    """Several values as one condition; `joint` is "and", "or", or "" for a single one."""

    condition: AnyCondition
    joint: str


JOINTS = (
    said(
        "and|and as|, and as|and as well|and in the|as well as|plus|and also|and on|and for|and by|and in|, and|, "
        "and on|, and for|and with|and under|/", "and"
    )
    | said("or|nor|or on|or for|or by|or in|, or|and / or|or with|nor on|nor for|nor by|or under|, or on", "or")
    | {",": ","}
    | said(
        "but not|and not|but not on|but not for|and not on|but not by|, but not|, not|not|but not with|, but not on",
        "not",
    )
)
_JOINT = phrases(JOINTS)
_OPENING = phrases({each: each for each in ("both", "either", "neither", "")})


def listed(
    item: str, made: Callable[[Any], AnyCondition], *, is_single: bool = False, tells_joint: bool = False
) -> Slot:
    """A slot for one or several values: "a", "a and b", "both a and b", "a, b or c", "neither a nor b", "a but not b".

    `item` is the template of one, whose first slot is its value; of `is_single` kinds a product has one alone, so
    that "by A and B" can only mean either; `joint` tells what was said where it `tells_joint`.
    """

    def chain(reading: Reading, start: int) -> Iterator[tuple[list[tuple[str, AnyCondition]], int]]:
        for captured, end in match(item, reading, start):
            one = made(captured[0][1])
            for joint, after in _JOINT(reading, end):
                for rest, stop in chain(reading, after):
                    yield [("", one), (joint, rest[0][1]), *rest[1:]], stop
            yield [("", one)], end

    def slot(reading: Reading, start: int) -> Iterator[tuple[Values, int]]:
        for opening, at in _OPENING(reading, start):
            for found, end in _first(chain(reading, at)):
                told = _joined(found, opening, is_single=is_single)
                if told is not None:
                    yield (_as_said(told, found) if tells_joint else told), end

    return slot


def _as_said(told: Values, found: list[tuple[str, AnyCondition]]) -> Values:
    """The values with the joint that was said, whatever it means."""
    is_and = len(found) > 1 and all(joint in ("", ",", "and") for joint, _ in found)
    return told._replace(joint="and") if is_and else told


def _first(ways: Iterator[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """The first ways, each end once."""
    kept: dict[int, Any] = {}
    for place, (found, end) in enumerate(ways):
        kept.setdefault(end, found)
        if place > MOST_WAYS:
            break
    return [(found, end) for end, found in kept.items()]


def _joined(found: list[tuple[str, AnyCondition]], opening: str, *, is_single: bool) -> Values | None:
    held = [condition for joint, condition in found if joint != "not"]
    barred = [opposite(condition) for joint, condition in found if joint == "not"]
    if opening and len(held) < 2:
        return None
    if opening == "neither":
        return None if barred else Values(opposite(either(held)), "")
    told = _held(found, held, opening, is_single=is_single)
    return Values(every([told.condition, *barred]), "and") if barred else told


def _held(found: list[tuple[str, AnyCondition]], held: list[AnyCondition], opening: str, *, is_single: bool) -> Values:
    joints = {joint for joint, _ in found} - {"", "not", ","}
    if len(held) == 1:
        return Values(held[0], "")
    if joints == {"and", "or"}:
        return Values(_mixed(found), "mixed")
    if "or" in joints or is_single:
        return Values(either(held), "or")
    return Values(every(held), "both" if opening else "and")


def _mixed(found: list[tuple[str, AnyCondition]]) -> AnyCondition:
    """`and` binds more than `or`."""
    groups: list[list[AnyCondition]] = [[]]
    for joint, condition in found:
        if joint == "or":
            groups.append([])
        if joint != "not":
            groups[-1].append(condition)
    return either([every(group) for group in groups])


def negated(told: Values, reading: Reading) -> AnyCondition | None:
    """The opposite of the values; None where "not A and B" may mean two things."""
    if told.joint in ("and", "mixed") and not isinstance(told.condition, Either):
        reading.doubts.append('"not A and B" can mean two things: say "neither A nor B", or "not both A and B"')
        return None
    return opposite(told.condition)


def signed(told: Values, reading: Reading, *flags: Any) -> AnyCondition | None:
    """The values, or their opposite where an odd number of the flags is set."""
    return negated(told, reading) if sum(map(bool, flags)) % 2 else told.condition
