"""Deprecation of routes, parameters and members. It is announced in headers (RFC 9745, RFC 8594) at least 90 days
before the sunset. After the sunset, requests that use the deprecated route, parameter or member are refused.

An option deprecates a route. The annotation `deprecated` of a field deprecates a parameter or a member.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from functools import lru_cache
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import inspect

from countersign.kernel import clock
from countersign.kernel.errors import InvalidField, Refused

GRACE = timedelta(days=90)
_KEY = "deprecation"

Header: TypeAlias = tuple[str, str]


class EndpointGone(Refused):
    """The endpoint's sunset has passed."""

    status = 410
    code = "endpoint_gone"
    title = "Gone"
    resolution = "Use the replacement that the deprecation notice names."


class MemberGone(Refused):
    """The sunset of a parameter, or of a member of the body, has passed."""

    status = 410
    code = "parameter_gone"
    title = "Parameter gone"
    resolution = "Omit what `errors` names; the deprecation notice names its replacement."


@dataclass(frozen=True, slots=True)
class Deprecation:
    """A deprecation: its date, its sunset (the date from which the deprecated use is refused), and a link to the
    replacement.

    Raises:
        ValueError: the sunset is less than 90 days after the announcement.
    """

    since: date
    sunset: date
    link: str

    def __post_init__(self) -> None:
        if self.sunset - self.since < GRACE:
            raise ValueError(f"a sunset is at least {GRACE.days} days after the announcement")

    @property
    def is_over(self) -> bool:
        """Return whether the sunset has passed."""
        return clock.now() >= clock.from_datetime(_midnight(self.sunset))


def deprecated(since: date, sunset: date, link: str) -> msgspec.Meta:
    """Return the annotation of a deprecated field. A parameter, or a member of a body, is refused after its sunset
    (MemberGone). For a member of a response, the deprecation is announced until a new version removes the member.

    Raises:
        ValueError: the sunset is less than 90 days after the announcement.
    """
    notice = Deprecation(since, sunset, link)
    json_schema = {"deprecated": True, "x-sunset": sunset.isoformat(), "x-deprecation": link}
    return msgspec.Meta(extra={_KEY: notice}, extra_json_schema=json_schema)


@lru_cache(maxsize=1024)
def field_deprecations(shape: type[msgspec.Struct]) -> Mapping[str, Deprecation]:
    """Map the names of a struct's deprecated fields on the wire to their deprecations."""
    struct_type = inspect.type_info(shape)
    if not isinstance(struct_type, inspect.StructType):
        return {}
    notice_by_name = {field.encode_name: _notice(field.type) for field in struct_type.fields}
    return {name: notice for name, notice in notice_by_name.items() if notice is not None}


def response_deprecations(shapes: Iterable[object]) -> tuple[Deprecation, ...]:
    """Return the deprecations of all members of these response shapes, at any depth."""
    deprecations: dict[Deprecation, None] = {}
    for kind in inspect.multi_type_info(shapes):
        deprecations.update(dict.fromkeys(_member_deprecations_within(kind, set())))
    return tuple(deprecations)


def parameter_deprecations(shape: type[msgspec.Struct], given: Iterable[str]) -> tuple[Deprecation, ...]:
    """Return the deprecations of the parameters that were sent.

    Raises:
        MemberGone: the sunset of one of the parameters has passed.
    """
    notices = field_deprecations(shape)
    return (
        tuple(_require_not_over(name, notices[name], is_parameter=True) for name in given if name in notices)
        if notices
        else ()
    )


def member_deprecations(body: msgspec.Struct) -> tuple[Deprecation, ...]:
    """Return the deprecations of the body's top-level members whose values differ from their defaults.

    Raises:
        MemberGone: the sunset of one of the members has passed.
    """
    notice_by_name = field_deprecations(type(body))
    if not notice_by_name:
        return ()
    sent_fields = (field for field in msgspec.structs.fields(body) if getattr(body, field.name) != field.default)
    return tuple(
        _require_not_over(f"/{sent_field.encode_name}", notice_by_name[sent_field.encode_name], is_parameter=False)
        for sent_field in sent_fields
        if sent_field.encode_name in notice_by_name
    )


def _require_not_over(place: str, notice: Deprecation, *, is_parameter: bool) -> Deprecation:
    if notice.is_over:
        detail = f"ended on {notice.sunset.isoformat()}; see {notice.link}"
        raise MemberGone(f"{place}: {detail}", faults=[InvalidField(place, detail, is_parameter=is_parameter)])
    return notice


def require_running(deprecation: Deprecation | None) -> None:
    """Check that the sunset of a route has not passed.

    Raises:
        Gone: the sunset of the route has passed.
    """
    if deprecation is not None and deprecation.is_over:
        raise EndpointGone(f"this endpoint ended on {deprecation.sunset.isoformat()}; see {deprecation.link}")


def deprecation_headers(deprecations: tuple[Deprecation, ...]) -> Iterator[Header]:
    """Yield the Deprecation, Sunset and Link headers of a response, with the earliest dates of all deprecations."""
    if deprecations:
        since = min(_midnight(deprecation.since) for deprecation in deprecations)
        sunset = min(_midnight(deprecation.sunset) for deprecation in deprecations)
        yield "Deprecation", f"@{int(since.timestamp())}"
        yield "Sunset", format_datetime(sunset, usegmt=True)
        for link in dict.fromkeys(deprecation.link for deprecation in deprecations):
            yield "Link", f'<{link}>; rel="deprecation"'


def _midnight(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), UTC)


def _notice(kind: inspect.Type) -> Deprecation | None:
    if not isinstance(kind, inspect.Metadata):
        return None
    notice = cast("dict[str, object]", kind.extra or {}).get(_KEY)
    return notice if isinstance(notice, Deprecation) else None


def _member_deprecations_within(kind: Any, types_seen: set[type]) -> Iterator[Deprecation]:
    if isinstance(kind, inspect.Metadata):
        notice = _notice(kind)
        if notice is not None:
            yield notice
        yield from _member_deprecations_within(kind.type, types_seen)
    elif isinstance(kind, inspect.StructType):
        if kind.cls not in types_seen:
            types_seen.add(kind.cls)
            for field in kind.fields:
                yield from _member_deprecations_within(field.type, types_seen)
    else:
        for inner_kind in _item_types(kind):
            yield from _member_deprecations_within(inner_kind, types_seen)


def _item_types(kind: Any) -> Iterable[Any]:
    """Return the item types of a container or a union."""
    if isinstance(kind, inspect.UnionType):
        return kind.types
    if isinstance(kind, inspect.TupleType):
        return kind.item_types
    if isinstance(kind, inspect.CollectionType):
        return (kind.item_type,)
    if isinstance(kind, inspect.DictType):
        return (kind.value_type,)
    return ()
