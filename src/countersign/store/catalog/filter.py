"""The filter object. A question is translated into a filter, agents and models send their queries as a filter, and a
lookup in the catalog takes only a filter.

Times are RFC 3339 texts in UTC; the range includes `since` and excludes `until`. A filter can also be written as
text, such as `kind=game; platform!=windows; since=2026-10-01`, which is a question with exactly that meaning.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Literal, TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from countersign.kernel import clock
from countersign.kernel.clock import Instant
from countersign.store.catalog.schemas import Access, ChannelName, Kind, Platform
from countersign.store.catalog.search import words

MAX_VALUES = 12
MAX_TERMS = 24
"""Maximum number of words of one filter that are searched for in titles and texts."""
FieldName: TypeAlias = Literal[
    "org", "kind", "platforms", "channels", "tags", "versions", "published_at", "notes", "license", "access",
    "homepage", "artifacts",
]  # fmt: skip
Find: TypeAlias = Literal["products", "releases", "publishers"]
When: TypeAlias = Literal["any", "first", "last", "none"]
Order: TypeAlias = Literal["title", "newest", "oldest", "releases", "platforms", "products"]
Answer: TypeAlias = Literal["list", "count", "exists", "fields", "compare", "breakdown"]
By: TypeAlias = Literal["kind", "platform", "channel", "org", "license", "tag", "access"]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Moment = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\d(T[\d:.]{8,}Z)?(?!\n)$")]
KNOWN: dict[str, tuple[str, ...]] = {
    "kind": get_args(Kind),
    "platform": get_args(Platform),
    "channel": get_args(ChannelName),
    "access": get_args(Access),
}
"""The slots with a fixed set of values."""


PLATFORM_NAMES = {
    "windows": "Windows", "macos": "macOS", "linux": "Linux", "android": "Android", "ios": "iOS", "web": "the web"
}  # fmt: skip
_PHRASES = {
    "platform": "on", "channel": "in", "tag": "tagged", "org": "by", "license": "licensed", "title": "titled",
    "text": "about", "product": "called", "version": "in version",
}  # fmt: skip
_RELEASED = {"none": "with no release", "first": "first released", "last": "last released", "any": "released"}


def _about(text: str, max_length: int | None = None) -> msgspec.Meta:
    return msgspec.Meta(description=text, max_length=max_length)


class Values(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename={"none": "not"}):
    """Of a slot."""

    any: Annotated[tuple[Text, ...], _about("one of", MAX_VALUES)] = ()
    all: Annotated[tuple[Text, ...], _about("each of", MAX_VALUES)] = ()
    none: Annotated[tuple[Text, ...], _about("none of", MAX_VALUES)] = ()

    def __bool__(self) -> bool:
        return bool(self.any or self.all or self.none)


class Where(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Conditions."""

    kind: Annotated[Values, _about("game, app, tool")] = Values()
    platform: Annotated[Values, _about("windows, macos, linux, android, ios, web")] = Values()
    access: Annotated[Values, _about("free, entitled")] = Values()
    tag: Annotated[Values, _about("tags")] = Values()
    org: Annotated[Values, _about("name or slug")] = Values()
    license: Annotated[Values, _about("names; open; none")] = Values()
    product: Annotated[Values, _about("title or slug")] = Values()
    title: Annotated[Values, _about("words of titles")] = Values()
    text: Annotated[Values, _about("words of any text")] = Values()
    version: Annotated[Values, _about("1.2.0, >1.0, <=2.0")] = Values()


class Filter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to look up."""

    find: Annotated[Find, _about("rows")] = "products"
    where: Annotated[Where, _about("of products")] = Where()
    channel: Annotated[Values, _about("stable, beta, nightly, alpha")] = Values()
    when: Annotated[When, _about("which release is in range")] = "any"
    since: Annotated[Moment, _about("UTC")] | None = None
    until: Annotated[Moment, _about("UTC; excluded")] | None = None
    order: Annotated[Order, _about("most first")] = "title"
    limit: Annotated[int, msgspec.Meta(ge=1, le=100, description="rows")] | None = None
    answer: Annotated[Answer, _about("form")] = "list"
    fields: Annotated[tuple[FieldName, ...], _about("of each", MAX_VALUES)] = ()
    by: Annotated[By, _about("counted by")] | None = None


SLOTS = (*Where.__struct_fields__, "channel")


def slot(query: Filter, name: str) -> Values:
    """The conditions of the filter on a slot."""
    values: Values = getattr(query if name == "channel" else query.where, name)
    return values


def with_slots(query: Filter, **slots: Values) -> Filter:
    """A copy of the filter with other values in these slots."""
    channel = slots.pop("channel", query.channel)
    return replace(query, channel=channel, where=replace(query.where, **slots))


def conditions(query: Filter) -> Iterator[tuple[str, Values]]:
    """The slots that have conditions."""
    return ((name, values) for name in SLOTS if (values := slot(query, name)))


def moment(text: str) -> Instant:
    """A time of the filter in the form that the database stores.

    Raises:
        ValueError: the date does not exist.
    """
    return clock.from_datetime(datetime.fromisoformat(text if "T" in text else f"{text}T00:00:00Z"))


def error_in(query: Filter) -> str | None:
    """Return the error in a filter: a wrong form, a value that the slot does not accept, or a date that does not
    exist. Return None if the filter is valid."""
    try:
        msgspec.convert(msgspec.to_builtins(query), Filter)
    except msgspec.ValidationError as error:
        return str(error)
    pairs = [(name, value) for name, values in conditions(query) for value in (*values.any, *values.all, *values.none)]
    for name, value in pairs:
        if value not in KNOWN.get(name, (value,)):
            return f"{name} must be one of {', '.join(KNOWN[name])}; {value} is not"
    return _error_in_texts(query) or _error_in_times(query)


def _error_in_texts(query: Filter) -> str | None:
    where = query.where
    texts = [value for values in (where.title, where.text) for value in (*values.any, *values.all, *values.none)]
    if sum(len(words(text)) for text in texts) > MAX_TERMS:
        return f"title and text must have at most {MAX_TERMS} words together"
    return None


def _error_in_times(query: Filter) -> str | None:
    try:
        early_times = [text for text in (query.since, query.until) if text is not None and moment(text) < 0]
    except ValueError:
        return "since and until must be days or moments that exist"
    return f"{early_times[0]} must not be before 1970" if early_times else None


def describe(filter: Filter) -> str:
    """The filter as text that has the same meaning when it is asked as a question."""
    where = filter.where
    noun = join_words([f"{kind}s" for kind in where.kind.any], "or") or filter.find
    text = " ".join([*where.access.any, *where.tag.any[:1], noun])
    text += "".join(_condition(name, values) for name, values in conditions(filter))
    time_texts = [f" {word} {end[:10]}" for word, end in (("since", filter.since), ("before", filter.until)) if end]
    return f"{text} {_RELEASED[filter.when]}{''.join(time_texts)}" if time_texts else text


def _condition(name: str, values: Values) -> str:
    """The condition as text after the noun; kinds, access and one tag precede the noun."""
    is_before = name in ("kind", "access") or (name == "tag" and len(values.any) == 1)
    positive = () if is_before else (*values.all, *values.any)
    value_groups = (("", positive, "and" if values.all else "or"), ("not ", values.none, "or"))
    return "".join(
        f" {sign}{_PHRASES.get(name, '')} {join_words([PLATFORM_NAMES.get(text, text) for text in texts], conjunction)}"
        for sign, texts, conjunction in value_groups
        if texts
    )


def join_words(items: Sequence[str], conjunction: str = "and") -> str:
    """The texts as a list: a, b and c."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {conjunction} {items[-1]}" if items else ""
