"""Times in a question: "since March", "the last 30 days", "between 1 May and 3 June 2026", "in Q3", all in UTC."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from countersign.store.ask.lexicon import COUNTS

MAX_WORDS = 14
"""Maximum number of words of a time."""
_MONTHS = str.split("january february march april may june july august september october november december")
_MONTH_OF = {name[:size]: place for place, name in enumerate(_MONTHS) for size in (3, 4, len(name))}
_AMBIGUOUS_MONTHS = frozenset(str.split("may mar dec jan"))
"""Names of months that can also be other words, such as "may". Such a name alone is not a time."""
_WEEKDAYS = str.split("monday tuesday wednesday thursday friday saturday sunday")
_DAYS_AGO = {"today": 0, "yesterday": 1, "day before yesterday": 2}
_NUMBERS = COUNTS | {
    "a": 1, "an": 1, "one": 1, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3, "dozen": 12, "a dozen": 12,
    "thirty": 30, "sixty": 60, "ninety": 90, "hundred": 100,
}  # fmt: skip
_UNITS = {"day": (0, 1), "week": (0, 7), "fortnight": (0, 14), "month": (1, 0), "quarter": (3, 0), "year": (12, 0)}
"""The number of months and the number of days of each unit."""
_YEAR_PARTS = {
    form: (place * size, size)
    for noun, size in (("quarter", 3), ("half", 6))
    for place, name in enumerate(str.split("first second third fourth")[: 12 // size])
    for form in (f"{noun[0]}{place + 1}", f"{name} {noun}")
}
"""The first month of each quarter and half, and its number of months."""


EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class Range(NamedTuple):
    """The time from `since` (inclusive) to `until` (exclusive)."""

    since: datetime = EARLIEST
    until: datetime = LATEST


_Period = tuple[datetime, datetime]


def found(words: Sequence[str], at: int, now: datetime) -> tuple[Range, int] | None:
    """Return the time that begins at this word, and the position after its last word; None if no time begins there."""
    text = " ".join(words[at : at + MAX_WORDS])
    opening = _OPENING.match(text)
    kind, begin = (str(opening.lastgroup), opening.end()) if opening else ("", 0)
    try:
        time = _combined_time(text, kind, begin, now)
    except (ValueError, OverflowError):
        return None
    return time and (time[0], at + text.count(" ", 0, time[1]) + 1)


def _combined_time(text: str, kind: str, begin: int, now: datetime) -> tuple[Range, int] | None:
    """Return the time combined with the words that follow it ("to May", "and June"), and the position of its end."""
    first, end = _period(text, begin, now, is_alone=not kind)
    if first is None:
        days = _DAYS.match(text, begin)
        if days is None or kind not in _OPENINGS[days["link"] == "and"]:
            return None
        last, end = _period(text, days.end(), now)
        return last and (Range(last[0].replace(day=int(days["day"])), last[1]), end)
    since, until = first
    linked = _to_second_time(text, kind, end, first, now)
    if linked is not None:
        return linked
    if later := _LATER.match(text, end):
        return Range(since), later.end()
    ends = {"since": Range(since), "after": Range(until), "before": Range(until=since), "until": Range(until=until)}
    # A range can begin or end at a moment. An event "in" a moment happened on the day of the moment.
    whole = Range(*(_day(since) if since == until else first))
    ends |= {"in": whole, "": whole}
    return (ends[kind], end) if kind in ends else None


def _to_second_time(text: str, kind: str, end: int, first: _Period, now: datetime) -> tuple[Range, int] | None:
    """Return the range from the first time to a second time after it, or None. Two adjacent months joined by "or" ("in
    May or June") form one range."""
    link, (since, until) = _LINK.match(text, end), first
    last, last_end = _period(text, link.end(), now) if link else (None, end)
    if link is None or last is None:
        return None
    if link[1] != "or" and kind in _OPENINGS[link[1] == "and"]:
        # If only the second time has a year, the first time gets this year or the year before.
        years = since.year - last[1].year + (since.replace(year=last[1].year) >= last[1])
        return Range(since.replace(year=since.year - max(0, years)), last[1]), last_end
    return (Range(since, last[1]), last_end) if kind in ("", "in") and last[0] == until else None


def _day(day: date, count: int = 1) -> _Period:
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return begin, begin + timedelta(count)


def _first_of(month: int) -> datetime:
    """Return the first day of a month, given as the number of months since year 0."""
    return datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)


def _months(first: int, count: int) -> _Period:
    return _first_of(first), _first_of(first + count)


def _iso(match: re.Match[str], _now: datetime) -> _Period:
    if match["time"]:
        moment = datetime.fromisoformat(match[0].upper())
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment, moment
    year, month, day = int(match["y"]), int(match["m"]), int(match["d"] or 0)
    return _day(date(year, month, day)) if day else _months(year * 12 + month - 1, 1)


def _calendar(match: re.Match[str], now: datetime) -> _Period:
    """Return a calendar period relative to now: this week, last month, the current year."""
    back = match["which"] not in ("this", "current")
    months, days = _UNITS[match["unit"]]
    if months:
        return _months(((now.year * 12 + now.month - 1) // months - back) * months, months)
    return _day(now - timedelta(now.weekday() % days + back * days), days)


def _before(match: re.Match[str], now: datetime) -> datetime:
    months, days = _UNITS[match["unit"]]
    count = _NUMBERS.get(match["n"]) or int(match["n"])
    month = now.year * 12 + now.month - 1
    then = _first_of(month - count * months) + (now - _first_of(month))
    return min(then, _first_of(month - count * months + 1)) - timedelta(count * days)


def _year_part(match: re.Match[str], now: datetime) -> _Period:
    first, count = _YEAR_PARTS[match["part"]]
    return _months(int(match["year"] or now.year) * 12 + first, count)


def _month(match: re.Match[str], now: datetime) -> _Period:
    """Return a month, or a day of a month. Without a year, the most recent such month or day that has begun."""
    month, day = _MONTH_OF[match["month"]], int(match["day"] or match["nth"] or 0)
    year = int(match["year"] or now.year - ((month + 1, day) > (now.month, now.day)))
    return _day(date(year, month + 1, day)) if day else _months(year * 12 + month, 1)


def _alternatives(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


_OPENING = re.compile(
    r"""(?:(?P<between>between)
    |(?P<since>since|on\ or\ after|from\ and\ after|no\ earlier\ than|not\ before|starting|beginning|as\ of|>=)
    |(?P<after>after|later\ than|newer\ than|>)
    |(?P<before>before|prior\ to|earlier\ than|older\ than|<
        |(?:more\ than|over)(?=\ \S+\ \S+\ (?:ago|back)\b))
    |(?P<until>until|no\ later\ than|on\ or\ before|up\ until|not\ after|up\ to|till|through|by|to|<=)
    |(?P<in>in|throughout|from|during|within|inside|around|on|of|for|at|=|:)
    )\ (?:(?:the\ )?(?:start|beginning|begin)\ of\ )?""",
    re.VERBOSE,
)
_DAYS = re.compile("(?:the )?(?P<day>[0-9]{1,2})(?:st|nd|rd|th)? (?P<link>to|until|till|through|-|and) ")
"""The first of two days of a month: "1 to 8 November"."""
_LINK = re.compile(" (to|until|till|through|-|and|or) ")
_LATER = re.compile(r" (?:\+|onwards?|(?:and|or) (?:later|after|onwards?|newer))(?= |$)")
_OPENINGS = (("", "in", "since"), ("between",))
"""The opening words that permit a second time. The second tuple is for times joined by "and"."""
_UNIT = rf"(?P<unit>{_alternatives(_UNITS)})s?"
_COUNT = rf"(?P<n>\d{{1,3}}|{_alternatives(_NUMBERS)}) {_UNIT}"
_OF_YEAR = r"(?:(?: ,| of| in)? (?P<year>(?:19|20)\d\d))?"
_ORDINAL = "(?:st|nd|rd|th)?"
_Reader = Callable[[re.Match[str], datetime], _Period | None]
_PATTERNS: tuple[tuple[str, _Reader], ...] = (
    (r"(?P<y>\d{4})[-/](?P<m>\d\d?)(?:[-/](?P<d>\d\d?)(?P<time>t\S+)?)?", _iso),
    (rf"(?P<name>{_alternatives(_DAYS_AGO)})", lambda match, now: _day(now - timedelta(_DAYS_AGO[match["name"]]))),
    (rf"(?P<which>this|last|previous|current|past) {_UNIT}", _calendar),
    (
        rf"(?:last|past|previous|over|more than|than) {_COUNT}",
        lambda match, now: (_before(match, now), now + timedelta(seconds=1)),
    ),
    (rf"{_COUNT} (?:ago|back)", lambda match, now: _day(_before(match, now))),
    (rf"(?P<part>{_alternatives(_YEAR_PARTS)}){_OF_YEAR}", _year_part),
    (
        rf"(?:(?:{_alternatives(_WEEKDAYS)}) (?:, |the )*)?(?:(?P<day>\d\d?){_ORDINAL} (?:of )?)?"
        rf"(?P<month>{_alternatives(_MONTH_OF)})\.?(?: (?:the )?(?P<nth>\d\d?){_ORDINAL}(?= |$))?{_OF_YEAR}",
        _month,
    ),
    (
        # The most recent such weekday before today.
        rf"(?:last )?(?P<weekday>{_alternatives(_WEEKDAYS)})",
        lambda match, now: _day(now - timedelta((now.weekday() - _WEEKDAYS.index(match["weekday"]) - 1) % 7 + 1)),
    ),
    (
        # A number that is greater than next year is not a year.
        r"(?:year )?(?P<y>(?:19|20)\d\d)",
        lambda match, now: _months(int(match["y"]) * 12, 12) if int(match["y"]) <= now.year + 1 else None,
    ),
)
_PERIODS = [(re.compile(rf"(?:the )?{pattern}(?= |$)"), reader) for pattern, reader in _PATTERNS]


def _period(text: str, begin: int, now: datetime, *, is_alone: bool = False) -> tuple[_Period | None, int]:
    """Return the day, week, month, quarter, half or year whose name begins at this position, and the end of the
    name."""
    for pattern, read in _PERIODS:
        match = pattern.match(text, begin)
        if match is None or (is_alone and read is _month and match[0] in _AMBIGUOUS_MONTHS):
            continue
        span = read(match, now)
        if span is not None:
            return span, match.end()
    return None, begin
