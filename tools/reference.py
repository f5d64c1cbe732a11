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
METRIC_SOURCES = (store_service.SERVICE, records_service.SERVICE, service_runner.operator_program)
"""The modules that declare the metrics. They are imported so that all metrics are known."""
EVERY_ROUTE = (*ROUTES, *documents.routes(ROUTES))
UNNAMED: dict[type, str] = {str: "a page", bytes: "the bytes", dict: "a JSON object"}
RESPONSE_MEMBER = "Member of the response"
TITLES = {
    "documents": "The service itself",
    "catalog": "Catalog",
    "ask": "Questions",
    "publishing": "Products, releases, media",
    "builds": "Files: upload and download",
    "processing": "Discarded drafts",
    "delivery": "Builds and updates",
    "library": "Library",
    "personal": "Data of the caller",
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
    "keys": "Keys for anyone",
    "sandbox": "Sandbox",
    "tools": "Tools for agents (MCP)",
}

Schema: TypeAlias = Mapping[str, Any]
Table: TypeAlias = Iterable[tuple[str, ...]]


def pages() -> dict[str, str]:
    """Map the file name of every generated page to its text."""
    return {
        "settings.md": settings_page(),
        "endpoints.md": endpoints_page(),
        "problems.md": problems_page(),
        "archive-rules.md": archive_rules_page(),
        "metrics.md": metrics_page(),
    }


def settings_page() -> str:
    """Return the page of all settings in the order of their declaration."""
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
            "An environment variable overrides the settings file, and the settings file overrides the default. [How to "
            "configure](../how-to/configure.md) describes the file. `countersign config` prints each value with its "
            "source, but not the values of secrets."
        )
        + "\n\n"
        + _table(("Setting", "Default", "Unit", "Meaning"), rows)
    )


def problems_page() -> str:
    """Return the page of all problem types in the order of their codes."""
    types = {problem_type.code: problem_type for problem_type in problems.problem_types(EVERY_ROUTE).values()}
    rows = [
        (
            f"`{code}`",
            str(problem_type.status),
            problem_type.title,
            _sentence(problem_type.__doc__),
            problem_type.resolution,
        )
        for code, problem_type in sorted(types.items())
    ]
    return (
        f"{NOTE}\n# Problem types\n\n"
        + _filled(
            "Error responses are `application/problem+json` (RFC 9457). They contain `type` (the address of a page "
            "about the problem type on the server), `title`, `status`, `detail`, `instance`, `code` and `message` (the"
            " same text as `detail`). Many also contain `resolution`, the remedy. If the input is invalid, `errors` "
            "contains an entry for each error, with `parameter` or `pointer`, and `detail`. Error responses of the "
            "token endpoint follow RFC 6749 §5.2: they contain `error` and `error_description`, and also `code` and "
            "`message`."
        )
        + "\n\n"
        + _table(("Code", "Status", "Title", "Meaning", "What to do"), rows)
    )


def archive_rules_page() -> str:
    """Return the page of all rules for archives."""
    paragraphs = (
        "The store accepts zip archives (including wheels and jars) and tar archives, uncompressed or compressed with "
        "gzip, xz or zstd. It reads them strictly: every byte must belong to a record, and a second parser must find "
        "the same entries. The store refuses an archive that breaks a rule. The error contains the name of the rule "
        "and, where possible, the entry.",
        "The limits are [settings](settings.md). The profile `compatible` relaxes only the rules for which the table "
        "says so. Of the mode of a file, only the permission to execute it is stored. Owners and times are not stored."
        " A hard link becomes a copy. An archive inside an archive is an ordinary file.",
    )
    head = f"{NOTE}\n# Rules of archives\n" + "".join(f"\n{_filled(paragraph)}\n" for paragraph in paragraphs)
    rows = [(f"`{word}`", meaning) for word, meaning in RULES.items()]
    return head + "\n" + _table(("Rule", "Requirement"), rows)


def metrics_page() -> str:
    """Return the page of all metrics in the order of their names."""
    paragraphs = (
        "The [operator port](../how-to/watch-a-server.md) serves these metrics at `/metrics` in the Prometheus text "
        "format. Counters of a process have the label `worker`, a number from 0. A value of a database or of the disk "
        "appears once. Durations are histograms in seconds: `_bucket`, `_sum`, `_count`. Labels contain route "
        "templates and constants, never an id, a name or text from a client.",
        "Every metric exists from the start, with the value 0 before the first event. The series of a route exist "
        "after its first request. Some metrics are missing in some installations: `countersign_database_wal_bytes` "
        "with PostgreSQL, `countersign_mail_outbox` with a mail server, and the metrics of a service that is not "
        "served.",
        "The label `database` is `distribution`, `records`, or `sandbox` (all data sets of the sandbox together).",
    )
    head = f"{NOTE}\n# Metrics\n" + "".join(f"\n{_filled(paragraph)}\n" for paragraph in paragraphs)
    rows = [
        (f"`{name}`", family.kind, ", ".join(f"`{label}`" for label in family.label_names), family.help_text)
        for name, family in sorted(metrics.FAMILIES.items())
    ]
    return head + "\n" + _table(("Metric", "Kind", "Labels", "Meaning"), rows)


def endpoints_page() -> str:
    """Return the page of all routes by feature, with callers, parameters, bodies, responses and problems."""
    general = ", ".join(f"`{route.code}`" for route in problems.EVERYWHERE)
    paragraphs = (
        "The server provides the same information as an OpenAPI document at `/openapi.json`. The members of the "
        "responses are described [at the end](#responses). Unknown parameters and members of a body are refused, "
        "except at the token endpoint.",
        "Some routes accept the header `Idempotency-Key`, a UUID that the caller chooses. If the same request is sent "
        "again within 24 hours, the response is the first response, with `Idempotency-Replayed: true`. Responses to "
        "requests that count towards a rate limit contain `RateLimit-Limit`, `RateLimit-Remaining` and "
        "`RateLimit-Reset`. Every route with GET also accepts HEAD.",
        f"Every route can respond with these [problems](problems.md), as far as they apply to it: {general}.",
    )
    head = f"{NOTE}\n# Endpoints\n" + "".join(f"\n{_filled(route)}\n" for route in paragraphs)
    sections: dict[str, list[Route[Store]]] = {name: [] for name in TITLES}
    for route in EVERY_ROUTE:
        sections[section_of(route.handler.__module__)].append(route)
    lines = [
        f"\n## {TITLES[feature]}\n" + "".join(f"\n{_endpoint(route)}" for route in section_routes)
        for feature, section_routes in sections.items()
    ]
    return head + "".join(lines) + _responses()


def address(route: Route[Store]) -> str:
    """Return the method and the full path of a route."""
    return f"{route.method} {route.path if route.at_root else PREFIX + route.path}"


def _endpoint(route: Route[Store]) -> str:
    docstring_parts = (
        inspect.cleandoc(route.handler.__doc__ or "").replace("\n\nRaises:", "\nRaises:").partition("\nRaises:")[0]
    )
    lines = [f"### {address(route)}\n", f"{_sentence(docstring_parts)}\n", f"- Callers: {_callers(route)}"]
    if route.writes:
        lines.append("- Accepts `Idempotency-Key`.")
    responses = ", ".join(f"{status} {_shape_name(shape)}".strip() for status, shape in route.answers.items())
    lines.append(f"- Responses: {responses}, as {', '.join(dict.fromkeys(route.produces))}")
    if codes := sorted({refusal.code for refusal in route.refusals}):
        lines.append("- Specific problems: " + ", ".join(f"`{code}`" for code in codes))
    if route.streams:
        lines.append("- Body: the bytes of the file, of any media type")
    text = "\n".join(lines) + "\n"
    body = "" if route.body is None else _members("Member of the body", route.body)
    return text + _members("Parameter", route.query) + body


def _callers(route: Route[Store]) -> str:
    if "{token}" in route.path:
        return "anyone who knows the address"
    if route.scope is not None:
        return f"anyone with the scope `{route.scope}`"
    if route.own_credentials and route.oauth and route.form:
        return "an OAuth client that authenticates with HTTP Basic or in the form, or anyone with the token to exchange"
    return "anyone with a token" if route.signed_in else "anyone"


def _responses() -> str:
    """Return the section with the members of every named response type."""
    shapes = {shape for route in EVERY_ROUTE for shape in shapes_of(route.answers) if shape not in UNNAMED}
    _, components = msgspec.json.schema_components(sorted(shapes, key=str), ref_template="{name}")
    lines = [
        f"\n### {name}\n\n{_sentence(schema.get('description'))}\n\n{_rows(RESPONSE_MEMBER, schema)}"
        for name, schema in sorted(components.items())
    ]
    return "\n## Responses\n" + "".join(lines)


def _members(title: str, shape: type[msgspec.Struct]) -> str:
    if shape is Nothing or not msgspec.structs.fields(shape):
        return ""
    _, components = msgspec.json.schema_components([shape], ref_template="{name}")
    return "\n" + _rows(title, components[shape.__name__])


def _rows(title: str, schema: Schema) -> str:
    required_names = schema.get("required", [])
    rows = [
        (f"`{name}`", _presence(title) if name in required_names else _default(member), _rule(member))
        for name, member in schema["properties"].items()
    ]
    return _table((title, "", "Value"), rows)


def _presence(title: str) -> str:
    return "always" if title == RESPONSE_MEMBER else "required"


def _default(member: Schema) -> str:
    default = member.get("default")
    return "" if default is None else f"default `{msgspec.json.encode(default).decode()}`"


def _rule(schema: Schema) -> str:
    """Describe the JSON Schema of one member in words."""
    if "anyOf" in schema:
        return " or ".join(_rule(variant) for variant in schema["anyOf"])
    if "$ref" in schema:
        return f"`{schema['$ref']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        items: Schema | bool = schema.get("items", False)
        content = "" if isinstance(items, bool) else f" of {_rule(items)}"
        return f"array{content}" + (f", {span} items" if (span := _span(schema, "minItems", "maxItems")) else "")
    rule_parts = [str(schema.get("format", schema.get("type", "any value")))]
    if span := _span(schema, "minLength", "maxLength"):
        rule_parts.append(f"{span} characters")
    if span := _span(schema, "minimum", "maximum"):
        rule_parts.append(span)
    if "pattern" in schema:
        rule_parts.append(f"`{schema['pattern'].replace('|', chr(92) + '|')}`")
    return ", ".join(rule_parts)


def _span(schema: Schema, min_key: str, max_key: str) -> str:
    min_value, max_value = schema.get(min_key), schema.get(max_key)
    if min_value is None and max_value is None:
        return ""
    if max_value is None:
        return f"{min_value} or more"
    return f"{0 if min_value is None else min_value}…{max_value}"


def _shape_name(shape: object) -> str:
    if shape is None:
        return ""
    if isinstance(shape, OneOf):
        return " or ".join(_shape_name(member) for member in shape)
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
