"""Times in a question: "since March", "the last 30 days", "between 1 May and 3 June 2026", "in Q3", all in UTC."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

MAX_WORDS = 14
"""Words of a time at most."""
MONTHS = str.split(
    "january february march april may june july august september october november december"
)
WEEKDAYS = str.split("monday tuesday wednesday thursday friday saturday sunday")
NUMBERS = {name: at for at, name in enumerate(str.split("one two three four five six seven eight nine ten"), 1)} | {
    "a": 1, "an": 1, "couple": 2, "a couple": 2, "few": 3, "a few": 3, "dozen": 12, "a dozen": 12,
    "thirty": 30, "sixty": 60, "ninety": 90, "hundred": 100,
}  # fmt: skip
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
_MONTH_OF = {name[:size]: place for place, name in enumerate(MONTHS, 1) for size in (3, 4, len(name))}
_NUMBER = rf"(?P<n>\d{{1,4}}|{'|'.join(sorted(NUMBERS, key=len, reverse=True))})(?: of)?"
_NTH = "(?P<nth>first|second|third|fourth|last|1st|2nd|3rd|4th)"
_UNIT = r"(?P<unit>hour|day|week|fortnight|month|quarter|year)s?"
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTH_OF, key=len, reverse=True))})\.?"
_DAY = r"(?P<day>\d\d?)(?:st|nd|rd|th)?"
_YEAR = r"(?:(?: ,| of| in)?(?: the year)? (?P<year>(?:19|20)\d\d|this year|last year))?"
_WAYS: tuple[tuple[str, str], ...] = (
    ("since", "on or after|no earlier than|not before|starting|beginning|as of|since|>=|from and after"),
    ("after", "later than|newer than|after|>"),
    ("before", "prior to|earlier than|older than|ahead of|before|<"),
    ("until", "no later than|on or before|up until|not after|up to|until|till|through|by|to|<="),
    ("in", "throughout|from|during|within|inside|around|from|in|on|of|for|at|=|:"),
)
_OPENING = re.compile(
    "(?:" + "|".join(f"(?P<{kind}>{ways})" for kind, ways in _WAYS) + ") "
    "(?:(?:the )?(?:start|beginning|begin|end) of )?"
)
_LINKS = re.compile(
    r"(?P<to>to|until|till|through|-|and) |(?P<or>or) |(?P<on>onwards?|on|or later|or newer|and later)(?= |$)"
)


class Range(NamedTuple):
    """From `since` until just before `until`; None: without that end."""

    since: datetime | None
    until: datetime | None

    @property
    def length(self) -> timedelta:
        """How long it is; without an end for ever."""
        return timedelta.max if self.since is None or self.until is None else self.until - self.since


class Found(NamedTuple):
    """A time, and the place after its last word."""

    range: Range
    end: int


def found(words: Sequence[str], at: int, now: datetime) -> Found | None:
    """The time that begins with this word."""
    text = " ".join(words[at : at + MAX_WORDS])
    is_between = text.startswith("between ")
    opening = None if is_between else _OPENING.match(text)
    begin = len("between ") if is_between else opening.end() if opening else 0
    before = " ".join([*words[max(0, at - 1) : at], text[:begin].strip()]).split()[-1:]
    first = _period(text, begin, now, before)
    if first is None:
        return None
    kind = "between" if is_between else (opening.lastgroup or "") if opening else ""
    span, end = _linked(text, kind, first, now)
    return None if kind == "between" and end == first[1] else Found(span, at + text.count(" ", 0, end) + 1)


def _linked(text: str, kind: str, first: tuple[Range, int], now: datetime) -> tuple[Range, int]:
    """The time with what is linked to it, "to May", "and June", "onwards", and where that ends."""
    span, end = first
    link = _LINKS.match(text, end + 1)
    if link and link["on"] and kind in ("", "in", "since"):
        return Range(span.since, None), link.end()
    last = _period(text, link.end(), now, ["to"]) if link and not link["on"] else None
    if link and last and _joins(link, kind, span, last[0]):
        return _spanning(span, last[0]), last[1]
    ends = {"since": Range(span.since, None), "after": Range(span.until, None), "before": Range(None, span.since)}
    ends["until"] = Range(None, span.until)
    return ends.get(kind, span), end


def _joins(link: re.Match[str], kind: str, first: Range, last: Range) -> bool:
    """Whether the two times are one: "from March to May", "in September or October 2026"."""
    if kind == "between" or link[0] == "and ":
        return kind == "between" and link[0] == "and "
    if link["or"]:
        return _spanning(first, last).length < timedelta(400)
    return kind in ("since", "in", "")


def _spanning(first: Range, last: Range) -> Range:
    """From the one to the other; where the second alone says the year, it is the first's too."""
    since, until = first.since, last.until
    if since is not None and until is not None and since >= until:
        since = since.replace(year=until.year - (0 if since.replace(year=until.year) < until else 1))
    return Range(since, until)


def _days(day: date, count: int = 1) -> Range:
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return Range(begin, begin + timedelta(count))


def _months(year: int, month: int, count: int) -> Range:
    end_year, end = divmod(year * 12 + month - 1 + count, 12)
    return Range(datetime(year, month, 1, tzinfo=UTC), datetime(end_year, end + 1, 1, tzinfo=UTC))


def _before(now: datetime, count: int, unit: str) -> datetime:
    if unit in ("month", "quarter", "year"):
        months = count * {"month": 1, "quarter": 3, "year": 12}[unit]
        year, month = divmod(now.year * 12 + now.month - 1 - months, 12)
        begin = datetime(1970, 1, 1, tzinfo=UTC)
        return begin if year < 1970 else now.replace(year=year, month=month + 1, day=min(now.day, 28))
    length = {"hour": timedelta(hours=1), "day": timedelta(1), "week": timedelta(7), "fortnight": timedelta(14)}[unit]
    return now - min(count * length, timedelta(15_000))


def _number(text: str) -> int:
    return int(text) if text.isdigit() else NUMBERS[text]


def _year(text: str | None, now: datetime) -> int:
    return 0 if text is None else int(text) if text.isdigit() else now.year - (text == "last year")


def _iso(match: re.Match[str], _now: datetime) -> Range:
    year, month, day = int(match["y"]), int(match["m"]), int(match["d"] or 0)
    return _days(date(year, month, day)) if day else _months(year, month, 1)


def _named_day(match: re.Match[str], now: datetime) -> Range:
    return _days(now.date() - timedelta(sum(match[name] is not None for name in ("one", "two"))))


def _relative(match: re.Match[str], now: datetime) -> Range | None:
    """This week, last month, the current year."""
    back, unit = match["which"] not in ("this", "current", "same"), match["unit"]
    if unit == "day":
        return _days(now.date() - timedelta(back))
    if unit == "week":
        return _days(now.date() - timedelta(now.weekday() + 7 * back), 7)
    count = {"month": 1, "quarter": 3, "year": 12}.get(unit)
    if count is None:
        return None
    year, place = divmod(now.year * (12 // count) + (now.month - 1) // count - back, 12 // count)
    return _months(year, place * count + 1, count)


def _rolling(match: re.Match[str], now: datetime) -> Range:
    return Range(_before(now, _number(match["n"]), match["unit"]), now + timedelta(seconds=1))


def _ago(match: re.Match[str], now: datetime) -> Range:
    moment = _before(now, _number(match["n"]), match["unit"])
    return Range(moment, moment) if match["unit"] == "hour" else _days(moment.date())


def _part(match: re.Match[str], now: datetime) -> Range:
    """A quarter or half of a year."""
    count = 3 if match["q"] or match["part"] == "quarter" else 6
    place = int(match["q"] or match["h"] or min(_ORDINALS[match["nth"]], 12 // count))
    return _months(_year(match["year"], now) or now.year, (place - 1) * count + 1, count)


def _of_month(match: re.Match[str], now: datetime) -> Range:
    """Without a year the last one that has begun."""
    month, day = _MONTH_OF[match["month"]], int(match["day"] or 0)
    begun = (month, day or 1) <= (now.month, now.day if month == now.month else 31)
    year = _year(match["year"], now) or now.year - (not begun)
    return _days(date(year, month, day)) if day else _months(year, month, 1)


def _weekday(match: re.Match[str], now: datetime) -> Range:
    """The last such day before today, or that of this or last week."""
    day = WEEKDAYS.index(str(match["weekday"]))
    if match["week"]:
        return _days(now.date() - timedelta(now.weekday() + 7 * (match["week"] == "last") - day))
    return _days(now.date() - timedelta((now.weekday() - day - 1) % 7 + 1))


def _whole_year(match: re.Match[str], now: datetime) -> Range | None:
    """A number beyond next year is no year."""
    year = int(match["y"])
    return _months(year, 1, 12) if year <= now.year + 1 else None


_Reader = Callable[[re.Match[str], datetime], Range | None]
_DATED = rf"(?:(?:{'|'.join(WEEKDAYS)})(?: ,| the)* )?"
_PATTERNS: tuple[tuple[str, _Reader], ...] = (
    (r"(?P<y>\d{4})[-/](?P<m>\d\d?)(?:[-/](?P<d>\d\d?))?(?:t\S*)?", _iso),
    ("(?:(?P<two>day before )?(?P<one>yesterday)|today|tonight)", _named_day),
    (rf"(?P<which>this|last|previous|current|past|same) {_UNIT}", _relative),
    (rf"(?:more than|last|past|previous|over|than) {_NUMBER} {_UNIT}", _rolling),
    (rf"{_NUMBER} {_UNIT} (?:ago|back)", _ago),
    (rf"(?:q(?P<q>[1-4])|h(?P<h>[12])|{_NTH} (?P<part>quarter|half)){_YEAR}", _part),
    (rf"{_DATED}{_DAY}(?: of)? {_MONTH}{_YEAR}", _of_month),
    (rf"{_DATED}{_MONTH}(?: the)? {_DAY}{_YEAR}", _of_month),
    (rf"{_MONTH}(?P<day>){_YEAR}", _of_month),
    (rf"(?:last )?(?P<weekday>{'|'.join(WEEKDAYS)})(?: of)?(?: (?P<week>this|last) week)?", _weekday),
    (r"(?:year )?(?P<y>(?:19|20)\d\d)", _whole_year),
)  # fmt: skip
_PERIODS = [(re.compile(rf"(?:the )?{pattern}(?= |$)"), reader) for pattern, reader in _PATTERNS]
_BEFORE_MAY = frozenset(
    str.split("in since during until of before after from to and or last this by between till through")
)


def _period(text: str, begin: int, now: datetime, before: Sequence[str]) -> tuple[Range, int] | None:
    """The day, week, month, quarter, half or year that has its name here, and where the name ends."""
    for pattern, read in _PERIODS:
        match = pattern.match(text, begin)
        if match is None or (read is _of_month and _is_verb(match, before)):
            continue
        try:
            span = read(match, now)
        except ValueError:
            return None
        if span is not None:
            return span, match.end()
    return None


def _is_verb(match: re.Match[str], before: Sequence[str]) -> bool:
    """Whether "may" is no month; "mar", "sun" and the like alone are words too."""
    is_bare = not (match["day"] or match["year"])
    return is_bare and match["month"] in ("may", "mar", "dec", "jan") and not _BEFORE_MAY & {*before}
