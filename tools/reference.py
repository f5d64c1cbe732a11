"""Writes the generated pages of docs/reference: settings, endpoints, problem types and rules of archives."""

import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from countersign.archives.refusals import RULES
from countersign.cli.server import records_service, service_runner, store_service
from countersign.kernel import metrics
from countersign.kernel.http.routing import Nothing, OneOf, Route
from countersign.kernel.http.routing import shapes as shapes_of
from countersign.settings import PREFIX as VARIABLE
from countersign.settings import Settings
from countersign.store.apidocs import problems
from countersign.store.apidocs import routes as documents
from countersign.store.apidocs.documents import section_of
from countersign.store.app import ROUTES
from countersign.store.context import PREFIX, Store

FOLDER = Path(__file__).parents[1] / "docs/reference"
NOTE = "<!-- Written by `make docs`; change the declarations instead. -->\n"
WATCHED = (store_service.SERVICE, records_service.SERVICE, service_runner.operator_program)
"""What tells metrics, so that all of them are declared."""
EVERY_ROUTE = (*ROUTES, *documents.routes(ROUTES))
UNNAMED: dict[type, str] = {str: "a page", bytes: "the bytes", dict: "a JSON object"}
ANSWERED = "Member of the answer"
TITLES = {
    "documents": "The service itself",
    "catalog": "Catalog",
    "ask": "Questions",
    "publishing": "Products, releases, media",
    "builds": "Files: upload and download",
    "processing": "Drafts that are not wanted any more",
    "delivery": "Builds and updates",
    "library": "Library",
    "personal": "What belongs to the caller",
    "redeem": "Codes",
    "batch": "Batches",
    "jobs": "Jobs",
    "identity": "Sign-in, organisations",
    "statistics": "Statistics",
    "signing": "Signing keys",
    "webhooks": "Webhooks",
    "oauth": "Tokens, authorization, metadata",
    "agents": "Agents: registration, claim, security events",
    "accounts": "Accounts: sign-up, password reset",
    "keys": "Keys that anybody takes",
    "sandbox": "Sandbox",
    "tools": "Tools for agents (MCP)",
}

Schema: TypeAlias = Mapping[str, Any]
Table: TypeAlias = Iterable[tuple[str, ...]]


def pages() -> dict[str, str]:
    """Every generated page by its file name."""
    return {
        "settings.md": settings_page(),
        "endpoints.md": endpoints_page(),
        "problems.md": problems_page(),
        "archive-rules.md": archive_rules_page(),
        "metrics.md": metrics_page(),
    }


def settings_page() -> str:
    """Every setting with default, unit and meaning, in the order of their declaration."""
    rows = [
        (
            f"`{VARIABLE}{item.name.upper()}`",
            f"`{str(item.default).lower() if isinstance(item.default, bool) else item.default}`"
            if item.default != ""
            else "empty",
            item.metadata["unit"],
            item.metadata["meaning"] + (" Secret." if item.metadata["secret"] else ""),
        )
        for item in fields(Settings)
    ]
    return (
        f"{NOTE}\n# Settings\n\n"
        + _filled(
            "The environment wins over the file, the file over the default; [how to configure](../how-to/configure.md) "
            "shows the file. `countersign config` prints each value and where it comes from, and never a secret."
        )
        + "\n\n"
        + _table(("Setting", "Default", "Unit", "Meaning"), rows)
    )


def problems_page() -> str:
    """Every problem type by its code, with status, meaning and remedy."""
    types = {found.code: found for found in problems.types(EVERY_ROUTE).values()}
    rows = [
        (f"`{code}`", str(found.status), found.title, _sentence(found.__doc__), found.resolution)
        for code, found in sorted(types.items())
    ]
    return (
        f"{NOTE}\n# Problem types\n\n"
        + _filled(
            "Errors are `application/problem+json` (RFC 9457): `type` (the address of the type's page on the server), "
            "`title`, `status`, `detail`, `instance`, `code`, `message` (the same as `detail`), often `resolution`, "
            "and `errors` (`parameter` or `pointer`, and `detail`) for each fault in the input. The token endpoint "
            "answers as RFC 6749 §5.2 says: `error`, `error_description`, and `code` and `message` besides."
        )
        + "\n\n"
        + _table(("Code", "Status", "Title", "Meaning", "What to do"), rows)
    )


def archive_rules_page() -> str:
    """Every rule that an archive can break, by its word."""
    paragraphs = (
        "Archives are read strictly: zip (wheels and jars too), and tar, plain or compressed with gzip, xz or zstd. "
        "Every byte has to belong to a record, and a second parser has to see the same entries. An archive that "
        "breaks a rule is refused whole, with the rule's word and, where there is one, the entry.",
        "The limits are [settings](settings.md). The profile `compatible` relaxes what is said here to be taken by "
        "it, and nothing else. What is kept of modes is whether a file may be run; owners and times are not kept; "
        "a hard link becomes a copy; archives inside of archives are files like others.",
    )
    head = f"{NOTE}\n# Rules of archives\n" + "".join(f"\n{_filled(each)}\n" for each in paragraphs)
    rows = [(f"`{word}`", meaning) for word, meaning in RULES.items()]
    return head + "\n" + _table(("Rule", "What it asks for"), rows)


def metrics_page() -> str:
    """Every metric of a server, by its name."""
    paragraphs = (
        "The metrics at `/metrics` of the [operator's port](../how-to/watch-a-server.md), as Prometheus text. Counters "
        "of a process have the label `worker`, from 0; a value of a database or the disk appears once. Durations are "
        "histograms in seconds: `_bucket`, `_sum`, `_count`. Labels contain templates and words of the code, never an "
        "id, a name, or text that a client sent.",
        "Every name exists from the start, with the value 0 before the first event; the series of a route appear with "
        "its first request. Not present are `countersign_database_wal_bytes` on PostgreSQL, "
        "`countersign_mail_outbox` where a mail server is configured, and the other service's where one alone is "
        "served.",
        "A database is `distribution`, `records`, or `sandbox`: all data sets of the sandbox together.",
    )
    head = f"{NOTE}\n# Metrics\n" + "".join(f"\n{_filled(each)}\n" for each in paragraphs)
    rows = [
        (f"`{name}`", each.kind, ", ".join(f"`{label}`" for label in each.labels), each.meaning)
        for name, each in sorted(metrics.FAMILIES.items())
    ]
    return head + "\n" + _table(("Metric", "Kind", "Labels", "Meaning"), rows)


def endpoints_page() -> str:
    """Every route with who may call it, parameters, body, answers and problems, by feature."""
    general = ", ".join(f"`{each.code}`" for each in problems.EVERYWHERE)
    paragraphs = (
        "In a form for machines: `/openapi.json` of the server. The members of the answers are [at the end](#answers). "
        "Unknown parameters and members of a body are refused, except at the token endpoint.",
        "A route that says so takes `Idempotency-Key`, a UUID of the caller's choice: sent again within 24 hours, the "
        "same request is answered as the first time, with `Idempotency-Replayed: true`. Counted answers carry "
        "`RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`. HEAD is answered wherever GET is.",
        f"Every route may answer these [problems](problems.md), where they can arise: {general}.",
    )
    head = f"{NOTE}\n# Endpoints\n" + "".join(f"\n{_filled(each)}\n" for each in paragraphs)
    sections: dict[str, list[Route[Store]]] = {name: [] for name in TITLES}
    for each in EVERY_ROUTE:
        sections[section_of(each.handler.__module__)].append(each)
    parts = [
        f"\n## {TITLES[feature]}\n" + "".join(f"\n{_endpoint(each)}" for each in listed)
        for feature, listed in sections.items()
    ]
    return head + "".join(parts) + _answers()


def address(route: Route[Store]) -> str:
    """The method and whole path of a route."""
    return f"{route.method} {route.path if route.at_root else PREFIX + route.path}"


def _endpoint(route: Route[Store]) -> str:
    words = inspect.cleandoc(route.handler.__doc__ or "").replace("\n\nRaises:", "\nRaises:").partition("\nRaises:")[0]
    lines = [f"### {address(route)}\n", f"{_sentence(words)}\n", f"- Who: {_who(route)}"]
    if route.writes:
        lines.append("- Takes `Idempotency-Key`.")
    answers = ", ".join(f"{status} {_shape_name(shape)}".strip() for status, shape in route.answers.items())
    lines.append(f"- Answers: {answers}, as {', '.join(dict.fromkeys(route.produces))}")
    if codes := sorted({each.code for each in route.refusals}):
        lines.append("- Problems of its own: " + ", ".join(f"`{code}`" for code in codes))
    if route.streams:
        lines.append("- Body: the bytes of the file, of any media type")
    text = "\n".join(lines) + "\n"
    body = "" if route.body is None else _members("Member of the body", route.body)
    return text + _members("Parameter", route.query) + body


def _who(route: Route[Store]) -> str:
    if "{token}" in route.path:
        return "anyone with the address"
    if route.scope is not None:
        return f"scope `{route.scope}`"
    if route.own_credentials and route.oauth and route.form:
        return "an OAuth client by HTTP Basic or in the form, or anyone with the token that is exchanged"
    return "anyone with a token" if route.signed_in else "anyone"


def _answers() -> str:
    """The members of every answer that has a name of its own."""
    shapes = {shape for each in EVERY_ROUTE for shape in shapes_of(each.answers) if shape not in UNNAMED}
    _, components = msgspec.json.schema_components(sorted(shapes, key=str), ref_template="{name}")
    parts = [
        f"\n### {name}\n\n{_sentence(schema.get('description'))}\n\n{_rows(ANSWERED, schema)}"
        for name, schema in sorted(components.items())
    ]
    return "\n## Answers\n" + "".join(parts)


def _members(title: str, shape: type[msgspec.Struct]) -> str:
    if shape is Nothing or not msgspec.structs.fields(shape):
        return ""
    _, components = msgspec.json.schema_components([shape], ref_template="{name}")
    return "\n" + _rows(title, components[shape.__name__])


def _rows(title: str, schema: Schema) -> str:
    required = schema.get("required", [])
    rows = [
        (f"`{name}`", _presence(title) if name in required else _default(member), _rule(member))
        for name, member in schema["properties"].items()
    ]
    return _table((title, "", "What it may be"), rows)


def _presence(title: str) -> str:
    return "always" if title == ANSWERED else "required"


def _default(member: Schema) -> str:
    default = member.get("default")
    return "" if default is None else f"default `{msgspec.json.encode(default).decode()}`"


def _rule(schema: Schema) -> str:
    """A JSON Schema of one member in words."""
    if "anyOf" in schema:
        return " or ".join(_rule(each) for each in schema["anyOf"])
    if "$ref" in schema:
        return f"`{schema['$ref']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        items: Schema | bool = schema.get("items", False)
        held = "" if isinstance(items, bool) else f" of {_rule(items)}"
        return f"array{held}" + (f", {span} of them" if (span := _span(schema, "minItems", "maxItems")) else "")
    said = [str(schema.get("format", schema.get("type", "any value")))]
    if span := _span(schema, "minLength", "maxLength"):
        said.append(f"{span} characters")
    if span := _span(schema, "minimum", "maximum"):
        said.append(span)
    if "pattern" in schema:
        said.append(f"`{schema['pattern'].replace('|', chr(92) + '|')}`")
    return ", ".join(said)


def _span(schema: Schema, least: str, most: str) -> str:
    low, high = schema.get(least), schema.get(most)
    if low is None and high is None:
        return ""
    if high is None:
        return f"{low} or more"
    return f"{0 if low is None else low}…{high}"


def _shape_name(shape: object) -> str:
    if shape is None:
        return ""
    if isinstance(shape, OneOf):
        return " or ".join(_shape_name(each) for each in shape)
    if isinstance(shape, type) and shape in UNNAMED:
        return UNNAMED[shape]
    return f"`{re.sub(r'[a-z_.]+[.]', '', getattr(shape, '__name__', '') if isinstance(shape, type) else str(shape))}`"


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())


def _filled(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _table(head: tuple[str, ...], rows: Table) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines).replace("|  |", "| |")


def _cell(text: str) -> str:
    return text.replace("<", "&lt;") if "`" not in text else text


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
