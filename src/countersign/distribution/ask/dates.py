"""Phrases of time: "since March", "in the last 30 days", "between 1 May and 3 June 2026", all in UTC."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from countersign.distribution.ask.templates import Reading
from countersign.kernel import clock
from countersign.kernel.clock import Instant

MOST_WORDS = 14
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_EARLIEST, _LATEST = 1970, 9000

_MONTH = "|".join(f"{month}|{month[:3]}|{month[:4]}" for month in MONTHS)
_NUMBER = rf"(?:\d{{1,4}}|a|an|couple of|{'|'.join(NUMBERS)})"
_UNIT = "hour|day|week|fortnight|month|quarter|year"
_PERIODS = (
    ("moment", r"(\d{4}-\d\d-\d\dt\d\d:\d\d:\d\d(?:\.\d+)?z)"),
    ("iso", r"(\d{4})-(\d\d)-(\d\d)"),
    ("month_number", r"(\d{4})-(\d\d)"),
    ("day_first", rf"(?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})(?: ,)?(?: (\d{{4}}))?"),
    ("month_first", rf"({_MONTH})(?: the)? (\d{{1,2}})(?:st|nd|rd|th)?(?: ,)?(?: (\d{{4}}))?"),
    ("quarter", r"q([1-4])(?: of)?(?: (\d{4}))?"),
    ("ordinal_quarter", r"(?:the )?(first|second|third|fourth) quarter(?: of)?(?: (\d{4}))?"),
    ("half", r"(?:the )?(first|second|last) half(?: of (\d{4}|this year|last year))?"),
    ("half", r"h([12])(?: of)?(?: (\d{4}))?"),
    (
        "feast",
        r"(halloween|christmas eve|christmas day|christmas|new year 's eve|new year 's day|valentine 's "
        r"day)(?: of)?(?: (\d{4}))?",
    ),
    ("month", rf"({_MONTH})(?: of)?(?: ,)?(?: (\d{{4}}))?"),
    ("month_of", rf"({_MONTH})(?: of)? (this|last) year"),
    ("year", r"(?:the year )?(\d{4})"),
    ("relative", rf"(this|last|the previous|previous|the current|the) ({_UNIT})"),
    ("day", r"(today|yesterday|the day before yesterday)"),
    ("weekday_of_week", rf"({'|'.join(WEEKDAYS)}) (?:of )?(this|last) week"),
    ("weekday", rf"(?:last )?({'|'.join(WEEKDAYS)})"),
    (
        "weekday_of_date",
        rf"({'|'.join(WEEKDAYS)})(?: ,)?(?: the)? (\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})(?: ,)? (\d{{4}})",
    ),
    ("ago", rf"({_NUMBER}) (hour|day|week|month|year)s? ago"),
)


class Range(NamedTuple):
    """From `since` until just before `until`; None: without that end."""

    since: Instant | None
    until: Instant | None


_COMPILED = [(name, re.compile(f"{pattern} ")) for name, pattern in _PERIODS]
_UNITS = rf"({_UNIT})s? "
_LAST = re.compile(
    rf"(?:(?:in|within|over|during|for|throughout|of|from|inside) )?(?:the (?:last|past|previous) (?:({_NUMBER}) "
    rf")?|(?:last|past) "
    rf"({_NUMBER}) |(?:less|no more|not more) than ({_NUMBER}) (?=\w+ ago )){_UNITS}(?:ago )?"
)
_LONGER_AGO = re.compile(rf"(?:more than|over|longer than) ({_NUMBER}) {_UNITS}ago ")
_ONE_ENDED: tuple[tuple[re.Pattern[str], Callable[[Range], Range]], ...] = (
    (
        re.compile(
            "(?:(?:in|during|on|throughout|within|for|from|as of|of|over|all of|in all of|anytime in|any time "
            "in|some time in|sometime in) )?"
        ),
        lambda told: told,
    ),
    (
        re.compile(
            "(?:(?:since|from) the (?:start|beginning) of|since|starting in|starting on|starting from|starting|"
            "beginning in|on or after|in or after|as from|no earlier than|not before) "
        ),
        lambda told: Range(told.since, None),
    ),
    (re.compile("(?:after|later than|newer than) "), lambda told: Range(told.until, None)),
    (re.compile("(?:before|prior to|earlier than|older than) "), lambda told: Range(None, told.since)),
    (
        re.compile(
            "(?:(?:up to|until|up until|till|through|before|by|to) the end of|until|till|up to|up until|by|"
            "no later than|on or before|not after|not later than|through) "
        ),
        lambda told: Range(None, told.until),
    ),
)
_JOINT = re.compile("(?:and|but|, but)? ?")
_TWO_ENDED = (("between ", re.compile("and ")), ("from ", re.compile("(?:to|until|till|through) ")))


def when(reading: Reading, start: int) -> Iterator[tuple[Range, int]]:
    """The ranges of time that are told here, the longer phrase first."""
    text, now = " ".join(reading.words[start : start + MOST_WORDS]) + " ", Instant(reading.now)
    found: dict[int, Range] = {}
    for told, length in (
        *_two_ended(text, now),
        *_days_of_month(text, now),
        *_after_and_before(text, now),
        *_rolling(text, now),
        *_one_ended(text, now),
    ):
        found.setdefault(start + text[:length].count(" "), told)
    yield from ((told, end) for end, told in sorted(found.items(), reverse=True))


def _two_ended(text: str, now: Instant) -> Iterator[tuple[Range, int]]:
    for opening, middle in _TWO_ENDED:
        if not text.startswith(opening):
            continue
        for first, end in _periods(text, len(opening), now):
            joint = middle.match(text, end)
            for last, stop in _periods(text, joint.end(), now) if joint else ():
                yield Range(first.since, last.until), stop
            if opening == "from " and (after := re.compile("(?:on|onward|onwards) ").match(text, end)):
                yield Range(first.since, None), after.end()


_DAYS = re.compile(
    rf"(?:(?:from|between|in|on) )?(?:the )?(\d{{1,2}})(?:st|nd|rd|th)? (?:to|and|until|through|till) "
    rf"((?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})(?: ,)?(?: (\d{{4}}))? )"
)


def _days_of_month(text: str, now: Instant) -> Iterator[tuple[Range, int]]:
    """ "from 1 to 15 October 2026": the month is said once."""
    if found := _DAYS.match(text):
        month = _month_of(found[4])
        year = _year(found[5], month, int(found[3]), _today(now))
        try:
            first, last = (_one_day(date(year, month, int(found[group]))) for group in (1, 3))
        except ValueError:
            return
        yield Range(first.since, last.until), found.end()


def _after_and_before(text: str, now: Instant) -> Iterator[tuple[Range, int]]:
    for first, end in _one_ended(text, now):
        joint = _JOINT.match(text, end) if first.until is None else None
        for last, stop in _one_ended(text[joint.end() :], now) if joint else ():
            if last.since is None:
                yield Range(first.since, last.until), joint.end() + stop if joint else stop


_FOR = re.compile(rf"for (?:over |more than |at least |about )?({_NUMBER}) {_UNITS}")


def _rolling(text: str, now: Instant) -> Iterator[tuple[Range, int]]:
    if (found := _FOR.match(text)) and (since := _rolled(found[1], found[2], now)):
        yield Range(since, None), found.end()
    if found := _LAST.match(text):
        number = found[1] or found[2] or found[3] or "a"
        if since := _rolled(number, found[4], now):
            yield Range(since, None), found.end()
    if (found := _LONGER_AGO.match(text)) and (until := _rolled(found[1], found[2], now)):
        yield Range(None, until), found.end()


def _rolled(number: str, unit: str, now: Instant) -> Instant | None:
    """The moment that many units before now; None where no calendar reaches back so far."""
    try:
        moment = _ago(_number(number), unit, now)
    except ValueError:
        return None
    return moment if moment >= day_start(date(_EARLIEST, 1, 1)) else None


def _one_ended(text: str, now: Instant) -> Iterator[tuple[Range, int]]:
    for opening, made in _ONE_ENDED:
        if found := opening.match(text):
            yield from ((made(told), end) for told, end in _periods(text, found.end(), now))


def _periods(text: str, start: int, now: Instant) -> Iterator[tuple[Range, int]]:
    """The periods that are named from this character on, each with the character after it."""
    for name, pattern in _COMPILED:
        found = pattern.match(text, start)
        told = _period(found, name, now) if found else None
        if found and told:
            yield told, found.end()


def day_start(day: date) -> Instant:
    """Midnight at the beginning of the day, UTC."""
    return clock.from_datetime(datetime(day.year, day.month, day.day, tzinfo=UTC))


def _today(now: Instant) -> date:
    return date.fromisoformat(clock.rfc3339(now)[:10])


def _days(first: date, after: date) -> Range:
    return Range(day_start(first), day_start(after))


def _add_months(day: date, months: int) -> date:
    """The same day some months later or earlier; the month's last when it is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return date(year, month + 1, min(day.day, last))


def _month_of(word: str) -> int:
    return next(number for number, month in enumerate(MONTHS, 1) if month.startswith(word[:3]))


def _number(word: str) -> int:
    if word.isdigit():
        return int(word)
    return {"a": 1, "an": 1, "couple of": 2}.get(word) or NUMBERS.index(word)


def _year(word: str | None, month: int, day: int, today: date) -> int:
    """The year that is named, else the latest in which that day is not in the future."""
    if word:
        return int(word)
    return today.year if (month, day) <= (today.month, today.day) else today.year - 1


def _quarter(number: int, year: int) -> Range:
    first = date(year, number * 3 - 2, 1)
    return _days(first, _add_months(first, 3))


def _relative(which: str, unit: str, now: Instant) -> Range | None:
    today = _today(now)
    back = 0 if which in ("this", "the current") else 1
    if which == "the":
        return None
    if unit in ("hour", "fortnight"):
        return None
    if unit == "day":
        return _days(today - timedelta(days=back), today + timedelta(days=1 - back))
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return _days(monday, monday + timedelta(days=7))
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    first = date(today.year, (today.month - 1) // months * months + 1, 1)
    first = _add_months(first, -months * back)
    return _days(first, _add_months(first, months))


def _ago(number: int, unit: str, now: Instant) -> Instant:
    """The moment that many units before now."""
    if unit in ("month", "quarter", "year"):
        today = _today(now)
        back = _add_months(today, -number * {"month": 1, "quarter": 3, "year": 12}[unit])
        return Instant(now - (day_start(today) - day_start(back)))
    hours = {"hour": 1, "day": 24, "week": 168, "fortnight": 336}[unit]
    return clock.later(now, seconds=-3600 * hours * number)


def _one_day(day: date) -> Range:
    return _days(day, day + timedelta(days=1))


def _named_day(found: re.Match[str], now: Instant, *, day_first: bool) -> Range:
    day_at, month_at = (1, 2) if day_first else (2, 1)
    day, month = int(found[day_at]), _month_of(found[month_at])
    return _one_day(date(_year(found[3], month, day, _today(now)), month, day))


def _month(found: re.Match[str], now: Instant) -> Range:
    month = _month_of(found[1])
    first = date(_year(found[2], month, 1, _today(now)), month, 1)
    return _days(first, _add_months(first, 1))


def _month_of_year(found: re.Match[str], now: Instant) -> Range:
    first = date(_today(now).year - (found[2] == "last"), _month_of(found[1]), 1)
    return _days(first, _add_months(first, 1))


def _weekday(found: re.Match[str], now: Instant) -> Range:
    today = _today(now)
    back = (today.weekday() - WEEKDAYS.index(found[1])) % 7 or 7
    return _one_day(today - timedelta(days=back))


_DAYS_AGO = {"today": 0, "yesterday": 1, "the day before yesterday": 2}


def _weekday_of_week(found: re.Match[str], now: Instant) -> Range:
    """ "Tuesday this week"; the week begins on Monday."""
    today = _today(now)
    monday = today - timedelta(days=today.weekday() + 7 * (found[2] == "last"))
    return _one_day(monday + timedelta(days=WEEKDAYS.index(found[1])))


def _weekday_of_date(found: re.Match[str], now: Instant) -> Range | None:
    """ "Friday, 13 November 2026"; None where that day was another."""
    day = date(int(found[4]), _month_of(found[3]), int(found[2]))
    return _one_day(day) if WEEKDAYS[day.weekday()] == found[1] else None


def _moment(found: re.Match[str], now: Instant) -> Range:
    moment = clock.from_datetime(datetime.fromisoformat(found[1].upper()))
    return Range(moment, moment)


def _ago_day(found: re.Match[str], now: Instant) -> Range:
    moment = _ago(_number(found[1]), found[2], now)
    return Range(moment, moment) if found[2] == "hour" else _one_day(_today(moment))


def _ordinal(found: re.Match[str], now: Instant) -> Range:
    number = ("first", "second", "third", "fourth").index(found[1]) + 1
    return _quarter(number, int(found[2] or _today(now).year))


def _half(found: re.Match[str], now: Instant) -> Range:
    named = {"this year": _today(now).year, "last year": _today(now).year - 1}
    year = named[found[2]] if found[2] in named else int(found[2] or _today(now).year)
    first = date(year, 1 if found[1] in ("first", "1") else 7, 1)
    return _days(first, _add_months(first, 6))


_FEASTS = {
    "halloween": (10, 31),
    "christmas eve": (12, 24),
    "christmas": (12, 25),
    "christmas day": (12, 25),
    "new year 's eve": (12, 31),
    "new year 's day": (1, 1),
    "valentine 's day": (2, 14),
}


def _feast(found: re.Match[str], now: Instant) -> Range:
    month, day = _FEASTS[found[1]]
    return _one_day(date(_year(found[2], month, day, _today(now)), month, day))


_READ: dict[str, Callable[[re.Match[str], Instant], Range | None]] = {
    "moment": _moment,
    "iso": lambda found, now: _one_day(date(int(found[1]), int(found[2]), int(found[3]))),
    "month_number": lambda found, now: _days(
        date(int(found[1]), int(found[2]), 1), _add_months(date(int(found[1]), int(found[2]), 1), 1)
    ),
    "day_first": lambda found, now: _named_day(found, now, day_first=True),
    "month_first": lambda found, now: _named_day(found, now, day_first=False),
    "quarter": lambda found, now: _quarter(int(found[1]), int(found[2] or _today(now).year)),
    "ordinal_quarter": _ordinal,
    "half": _half,
    "feast": _feast,
    "month": _month,
    "month_of": _month_of_year,
    "year": lambda found, now: _days(date(int(found[1]), 1, 1), date(int(found[1]) + 1, 1, 1)),
    "relative": lambda found, now: _relative(found[1], found[2], now),
    "day": lambda found, now: _one_day(_today(now) - timedelta(days=_DAYS_AGO[found[1]])),
    "weekday": _weekday,
    "weekday_of_week": _weekday_of_week,
    "weekday_of_date": _weekday_of_date,
    "ago": _ago_day,
}


def _period(found: re.Match[str], name: str, now: Instant) -> Range | None:
    """The period that was found; None where there is no such day."""
    try:
        told = _READ[name](found, now)
    except ValueError:
        return None
    early, late = day_start(date(_EARLIEST, 1, 1)), day_start(date(_LATEST, 1, 1))
    if told is None or not (early <= (told.since or early) and (told.until or late) <= late):
        return None
    return told
