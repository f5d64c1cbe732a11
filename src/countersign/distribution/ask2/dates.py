"""Times in a question: "since March", "the last 30 days", "between 1 May and 3 June 2026", "in Q3", all in UTC."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

MONTHS = "january february march april may june july august september october november december".split()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
NUMBERS = dict(
    zip("one two three four five six seven eight nine ten eleven twelve".split(), range(1, 13), strict=True)
) | {"a": 1, "an": 1, "couple": 2, "few": 3, "dozen": 12, "thirty": 30, "sixty": 60, "ninety": 90}
_MONTH_OF = {name[:size]: place for place, name in enumerate(MONTHS, 1) for size in (3, 4, len(name))}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4}
_UNITS = ("hour", "day", "week", "fortnight", "month", "quarter", "year")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_ISO = re.compile(r"(\d{4})-(\d\d)(?:-(\d\d))?(?:t.*)?")
_SLASHED = re.compile(r"(\d{4})/(\d\d?)(?:/(\d\d?))?")
_QUARTER = re.compile(r"q([1-4])")
_HALF = re.compile(r"h([12])")

_SINCE = ("since", "starting", "beginning", "as of", "on or after", "no earlier than", "not before", ">=")
_AFTER = ("after", "later than", "newer than", "past", ">")
_BEFORE = ("before", "prior to", "earlier than", "older than", "ahead of", "<")
_UNTIL = ("until", "till", "up to", "by", "through", "to", "no later than", "on or before", "up until", "not after", "<=")
_IN = ("in", "from", "during", "on", "within", "of", "for", "throughout", "at", "around", "inside", "=", ":")
_OPENINGS = sorted(
    [(way.split(), kind) for kind, ways in
     (("since", _SINCE), ("after", _AFTER), ("before", _BEFORE), ("until", _UNTIL), ("in", _IN)) for way in ways],
    key=lambda opening: -len(opening[0]),
)  # fmt: skip


class Range(NamedTuple):
    """From `since` until just before `until`; None: without that end."""

    since: datetime | None
    until: datetime | None


class Found(NamedTuple):
    """A time, and the place after its last word."""

    range: Range
    end: int


def found(words: Sequence[str], at: int, now: datetime) -> Found | None:
    """The time that is told from this word on."""
    if words[at : at + 1] == ["between"] and (first := _period(words, at + 1, now)) is not None:
        if words[first.end : first.end + 1] == ["and"] and (last := _period(words, first.end + 1, now)) is not None:
            return Found(_spanning(first.range, last.range), last.end)
        return None
    kind, start = _opening(words, at)
    period = _rolling(words, start, now) if kind in ("", "in", "since") else None
    period = period or _period(words, start, now)
    if period is None:
        return None
    since, until = period.range
    # "in September or October 2026": the year is of both.
    if words[period.end : period.end + 1] == ["or"] and (last := _period(words, period.end + 1, now)) is not None:
        both = _spanning(period.range, last.range)
        if both.since is not None and both.until is not None and (both.until - both.since).days < 400:
            return Found(both, last.end)
    if kind in ("since", "in", "") and words[period.end : period.end + 1] and words[period.end] in ("to", "until", "till", "through", "-"):
        last = _period(words, period.end + 1, now)
        if last is not None:
            return Found(_spanning(period.range, last.range), last.end)
    if words[at : at + 1] == ["from"] and words[period.end : period.end + 1] in (["on"], ["onwards"], ["onward"]):
        return Found(Range(since, None), period.end + 1)
    ranges = {
        "since": Range(since, None if kind == "since" else until),
        "after": Range(until, None),
        "before": Range(None, since),
        "until": Range(None, until),
    }
    return Found(ranges.get(kind, period.range), period.end)


def _spanning(first: Range, last: Range) -> Range:
    """From the one to the other; where the second alone says the year, it is the first's too."""
    since, until = first.since, last.until
    if since is not None and until is not None and since >= until:
        since = since.replace(year=until.year - (0 if since.replace(year=until.year) < until else 1))
    return Range(since, until)


def _opening(words: Sequence[str], at: int) -> tuple[str, int]:
    for way, kind in _OPENINGS:
        if list(words[at : at + len(way)]) == way:
            start = at + len(way)
            if words[start : start + 4] in (["the", "start", "of"], ["the", "beginning", "of"], ["the", "end", "of"]):
                start += 3
            return kind, start
    return "", at


def _rolling(words: Sequence[str], at: int, now: datetime) -> Found | None:
    """The last 30 days, the past two weeks."""
    place = at + (words[at : at + 1] == ["the"])
    place += words[place : place + 2] == ["more", "than"]
    if words[place : place + 1] and words[place] in ("last", "past", "previous", "over", "than"):
        count, after = _number(words, place + 1)
        if after > place + 1 and (unit := _unit(words, after)):
            return Found(Range(_before(now, count, unit), now + timedelta(seconds=1)), after + 1)
    return None


def _number(words: Sequence[str], at: int) -> tuple[int, int]:
    """A number of units and the place after it; the place itself where there is none."""
    told = words[at] if at < len(words) else ""
    if told.isdigit() and len(told) <= 4:
        return int(told), at + 1
    if told in NUMBERS:
        after = at + 1
        if told in ("a", "an") and words[after : after + 1] and words[after] in NUMBERS:
            told, after = words[after], after + 1
        return NUMBERS[told], after + (words[after : after + 1] == ["of"])
    return 0, at


def _unit(words: Sequence[str], at: int) -> str:
    told = words[at].removesuffix("s") if at < len(words) else ""
    return told if told in _UNITS else ""


def _before(now: datetime, count: int, unit: str) -> datetime:
    if unit in ("month", "quarter", "year"):
        months = count * {"month": 1, "quarter": 3, "year": 12}[unit]
        year, month = divmod(now.year * 12 + now.month - 1 - months, 12)
        if year < 1970:
            return datetime(1970, 1, 1, tzinfo=UTC)
        return now.replace(year=year, month=month + 1, day=min(now.day, 28))
    length = {"hour": timedelta(hours=1), "day": timedelta(1), "week": timedelta(7), "fortnight": timedelta(14)}[unit]
    return now - min(count * length, timedelta(15_000))


def _period(words: Sequence[str], at: int, now: datetime) -> Found | None:
    """A day, week, month, quarter, half or year that has a name."""
    place = at + (words[at : at + 1] == ["the"])
    told = words[place] if place < len(words) else ""
    for read in (_iso, _named_day, _relative, _ago, _quarter, _of_month, _weekday):
        got = read(words, place, now)
        if got is not None:
            return got
    if _YEAR.fullmatch(told):
        return Found(_months(int(told), 1, 12), place + 1)
    if told == "year" and place + 1 < len(words) and _YEAR.fullmatch(words[place + 1]):
        return Found(_months(int(words[place + 1]), 1, 12), place + 2)
    return None


def _days(day: date, count: int = 1) -> Range:
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return Range(begin, begin + timedelta(count))


def _months(year: int, month: int, count: int) -> Range:
    end_year, end = divmod(year * 12 + month - 1 + count, 12)
    return Range(datetime(year, month, 1, tzinfo=UTC), datetime(end_year, end + 1, 1, tzinfo=UTC))


def _iso(words: Sequence[str], at: int, _now: datetime) -> Found | None:
    told = words[at] if at < len(words) else ""
    match = _ISO.fullmatch(told) or _SLASHED.fullmatch(told)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3] or 0)
    try:
        return Found(_days(date(year, month, day)) if day else _months(year, month, 1), at + 1)
    except ValueError:
        return None


def _named_day(words: Sequence[str], at: int, now: datetime) -> Found | None:
    if list(words[at : at + 3]) == ["day", "before", "yesterday"]:
        return Found(_days(now.date() - timedelta(2)), at + 3)
    told = words[at] if at < len(words) else ""
    if told in ("today", "tonight", "yesterday"):
        return Found(_days(now.date() - timedelta(told == "yesterday")), at + 1)
    return None


def _relative(words: Sequence[str], at: int, now: datetime) -> Found | None:
    """This week, last month, the current year; a weekday of one of the weeks."""
    told = words[at] if at < len(words) else ""
    unit = _unit(words, at + 1)
    if told not in ("this", "last", "previous", "current", "past") or unit in ("", "hour", "fortnight"):
        return None
    back = told not in ("this", "current")
    end = at + 2
    if unit == "day":
        return Found(_days(now.date() - timedelta(back)), end)
    if unit == "week":
        return Found(_days(now.date() - timedelta(now.weekday() + 7 * back), 7), end)
    count = {"month": 1, "quarter": 3, "year": 12}[unit]
    year, place = divmod(now.year * (12 // count) + (now.month - 1) // count - back, 12 // count)
    return Found(_months(year, place * count + 1, count), end)


def _ago(words: Sequence[str], at: int, now: datetime) -> Found | None:
    count, after = _number(words, at)
    unit = _unit(words, after) if after > at else ""
    if unit == "" or words[after + 1 : after + 2] != ["ago"]:
        return None
    moment = _before(now, count, unit)
    return Found(Range(moment, moment) if unit == "hour" else _days(moment.date()), after + 2)


def _quarter(words: Sequence[str], at: int, now: datetime) -> Found | None:
    told = words[at] if at < len(words) else ""
    following = words[at + 1] if at + 1 < len(words) else ""
    if match := _QUARTER.fullmatch(told):
        month, count, after = int(match[1]) * 3 - 2, 3, at + 1
    elif match := _HALF.fullmatch(told):
        month, count, after = int(match[1]) * 6 - 5, 6, at + 1
    elif told in _ORDINALS and following in ("quarter", "half"):
        count = 3 if following == "quarter" else 6
        place = min(_ORDINALS[told], 12 // count)
        month, after = (place - 1) * count + 1, at + 2
    else:
        return None
    year, after = _year(words, after, now)
    return Found(_months(year or now.year, month, count), after)


def _year(words: Sequence[str], at: int, now: datetime) -> tuple[int, int]:
    """The year that follows, and the place after it; 0 where none does."""
    place = at
    while words[place : place + 1] and words[place] in (",", "of", "in"):
        place += 1
    if place < len(words) and _YEAR.fullmatch(words[place]):
        return int(words[place]), place + 1
    if list(words[place : place + 2]) in (["this", "year"], ["last", "year"]):
        return now.year - (words[place] == "last"), place + 2
    return 0, at


def _of_month(words: Sequence[str], at: int, now: datetime) -> Found | None:
    """May, May 2026, 3 May, May 3rd 2026, the 3rd of May; without a year the last one that has begun."""
    day, place = 0, at
    match = _DAY.fullmatch(words[at]) if at < len(words) else None
    if match is not None:
        day, place = int(match[1]), at + 1
        place += words[place : place + 1] == ["of"]
    month = _MONTH_OF.get(words[place].removesuffix("."), 0) if place < len(words) else 0
    if not month or (words[place] == "may" and not _is_month(words, place, is_day_before=day > 0)):
        return None
    place += 1
    if not day and place < len(words):
        place += words[place] == "the"
        match = _DAY.fullmatch(words[place]) if place < len(words) else None
        if match is not None and 1 <= int(match[1]) <= 31:
            day, place = int(match[1]), place + 1
    year, place = _year(words, place, now)
    if not year:
        year = now.year if (month, day or 1) <= (now.month, now.day if month == now.month else 31) else now.year - 1
    try:
        return Found(_days(date(year, month, day)) if day else _months(year, month, 1), place)
    except ValueError:
        return None


def _is_month(words: Sequence[str], at: int, *, is_day_before: bool) -> bool:
    """Whether "may" is the month, and no verb."""
    before = words[at - 1] if at else ""
    after = words[at + 1] if at + 1 < len(words) else ""
    named = before in ("in", "since", "during", "until", "of", "before", "after", "from", "to", "and", "last", "this", "by")
    return is_day_before or named or _YEAR.fullmatch(after) is not None or _DAY.fullmatch(after) is not None


def _weekday(words: Sequence[str], at: int, now: datetime) -> Found | None:
    """The last such day before today, or that of this or last week; in front of a date it says nothing more."""
    place = at + (words[at : at + 1] == ["last"])
    told = words[place] if place < len(words) else ""
    if told not in WEEKDAYS:
        return None
    dated = _of_month(words, place + 1 + (words[place + 1 : place + 2] in ([","], ["the"])), now)
    if dated is not None:
        return dated
    day, after = WEEKDAYS.index(told), place + 1
    after += words[after : after + 1] == ["of"]
    if list(words[after : after + 2]) in (["this", "week"], ["last", "week"]):
        monday = now.date() - timedelta(now.weekday() + 7 * (words[after] == "last"))
        return Found(_days(monday + timedelta(day)), after + 2)
    return Found(_days(now.date() - timedelta((now.weekday() - day - 1) % 7 + 1)), place + 1)
