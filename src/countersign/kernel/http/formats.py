"""The `format` of small answers: one struct as json, text, html or yaml."""

from collections.abc import Callable
from html import escape
from typing import Annotated

import msgspec

from countersign.kernel.http import html, response
from countersign.kernel.http.response import JSON, Answer

TEXT = "text/plain; charset=utf-8"
YAML = "application/yaml"

FORMATS = (JSON, "text/plain", "text/html", YAML)
"""The media types of an answer that `shown` makes, for its route's `produces`."""


class FormatQuery(msgspec.Struct, forbid_unknown_fields=True):
    """`format` is json, text, html or yaml; anything else is served as json (decisions 11)."""

    format: Annotated[
        str,
        msgspec.Meta(description="The form of the answer.", examples=["json", "text", "html", "yaml"]),
    ] = "json"


def shown(value: msgspec.Struct, form: str, status: int = 200) -> Answer:
    """The object in the asked-for format; caches do not keep it."""
    members: dict[str, object] = msgspec.to_builtins(value)
    headers = (("Cache-Control", "no-store"),)
    if form == "text":
        return Answer(status, _lines(members, _plain), TEXT, headers)
    if form == "yaml":
        return Answer(status, _lines(members, _scalar), YAML, headers)
    if form == "html":
        rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(_plain(member))}</dd>" for name, member in members.items())
        return Answer(status, html.written("At a glance", f"<dl>{rows}</dl>"), html.HTML, (html.POLICY, *headers))
    return response.json(value, status, headers)


def _lines(members: dict[str, object], written: Callable[[object], str]) -> bytes:
    return "".join(f"{name}: {written(member)}\n" for name, member in members.items()).encode()


def _plain(member: object) -> str:
    """A member for people: text as it is, anything else as in JSON."""
    return member if isinstance(member, str) else _scalar(member)


def _scalar(member: object) -> str:
    """A member as YAML; every JSON value is one (YAML 1.2 §1.3)."""
    return response.encode(member).decode()
