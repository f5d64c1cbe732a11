"""The laundering table: writing any token to any field by any command of any shipped model reveals no value in
clear."""

import random
import re
from collections.abc import Iterator
from typing import Any, cast

from countersign.declare import Declared
from countersign.records.commands.select import personal_fields
from tests.figures import Figures
from tests.records.office import Office

SAMPLE = 100
MODELS = ("party", "address", "lead", "activity", "ticket", "product", "invoice", "invoice_line", "payment", "user")
_TOKEN = re.compile(r"(?<![A-Za-z0-9_])([A-Z]+)_(\d{1,15})(?![A-Za-z0-9_])")

Try = tuple[str, dict[str, object]]


async def test_no_token_in_any_field_of_any_command_gives_a_clear_value(
    office: Office, is_full: bool, figures: Figures
) -> None:
    agent = await office.agent("root", label="launderer")
    canaries = await _personal_values(office)
    tokens, records_by_model = await _tokens(office, agent)
    tries = list(_tries(office, tokens, records_by_model))
    if not is_full:
        tries = random.Random(1).sample(tries, SAMPLE)

    status_counts = {200: 0, 202: 0, 400: 0, 404: 0}
    for command, body in tries:
        answer = await office.call(agent, command, body)
        status_counts[answer.status_code] += 1
        _require_hidden(answer.text, canaries)
        if answer.status_code == 429:
            raise AssertionError("tokens it was given are known")

    await _hold_everything(office, agent, canaries)
    await _hold_everything(office, "bob", canaries)
    assert status_counts[400] > len(tries) / 10
    assert status_counts[200] + status_counts[202] > 0
    answered = {f"answered_{status}": count for status, count in status_counts.items()}
    figures.update({"combinations": len(tries), "clear_values": 0, **answered})


def _require_hidden(text: str, canaries: list[str]) -> None:
    # Search for one value after another: one pattern of all values takes thirty times as long.
    for canary in canaries:
        canary_index = text.find(canary)
        assert canary_index < 0, f"{canary} in …{text[max(0, canary_index - 200) : canary_index + 300]}…"


async def _personal_values(office: Office) -> list[str]:
    """Return every personal value of the demonstration data that is too long to occur by chance."""
    values: set[str] = set()
    for model, declared in office.service.records.registry.models.items():
        for name in personal_fields(declared):
            rows = await office.service.records.database.fetch(f'SELECT DISTINCT "{name}" FROM "{model}"')
            values |= {row[0] for row in rows if row[0] and len(row[0]) > 7}
    # A value that the caller may read in clear elsewhere proves nothing.
    clear_text = str([await office.all(model, "bob") for model in ("lead", "ticket", "party")])
    return [name for name in sorted(values) if name not in clear_text]


async def _tokens(office: Office, agent: str) -> tuple[dict[str, str], dict[str, list[dict[str, Any]]]]:
    """Return a token of each label and some records of each model, as the agent sees them."""
    tokens: dict[str, str] = {}
    records_by_model: dict[str, list[dict[str, Any]]] = {}
    for model in MODELS:
        records_by_model[model] = cast("list[dict[str, Any]]", await office.value(agent, f"{model}.list", limit=40))
        for label, number in _TOKEN.findall(str(records_by_model[model])):
            tokens.setdefault(label, f"{label}_{number}")
    assert {"PERSON", "EMAIL", "PHONE", "TAXID", "NOTES"} <= tokens.keys()
    return tokens, records_by_model


def _tries(office: Office, tokens: dict[str, str], records_by_model: dict[str, list[dict[str, Any]]]) -> Iterator[Try]:
    for model in MODELS:
        declared = office.service.records.registry.models[model]
        record = records_by_model[model][-1]["id"] if records_by_model[model] else "x"
        for token in tokens.values():
            for text in (token, f"About {token}, soon"):
                for field in ("id", *declared.fields):
                    yield from _commands(declared, record, field, text, records_by_model[model])


def _commands(
    model: Declared, record: str, field: str, text: str, records: list[dict[str, Any]]
) -> Iterator[Try]:
    name = model.name
    required_values = {field.name: _sample(records, field.name) for field in model.fields.values() if field.required}
    condition = {"field": field, "op": "contains", "value": text}
    yield f"{name}.update", {"id": record, field: text}
    yield f"{name}.create", {**{key: value for key, value in required_values.items() if value is not None}, field: text}
    yield f"{name}.import", {"csv": f'{field}\n"{text}"\n', "dry_run": True}
    for reading in ("list", "search", "export", "count_by"):
        yield f"{name}.{reading}", {"filter": [condition], **({"field": field} if reading == "count_by" else {})}
    steps = [{"command": f"{name}.update", "input": {"id": record, field: text}}]
    yield "plan.propose", {"steps": steps, "why": text if field == "id" else "because"}
    for move in () if model.workflow is None else model.workflow.moves:
        yield f"{name}.{move}", {"id": record, field: text}


def _sample(records: list[dict[str, Any]], name: str) -> object:
    return next((row[name] for row in records if row.get(name) is not None), None)


async def _hold_everything(office: Office, who: str, canaries: list[str]) -> None:
    """Require that nothing that the caller can read contains one of these values."""
    answer = await office.http.get("/api/commands", headers=office.headers(who))
    commands = {command["id"] for command in answer.json()["commands"]}
    for command in sorted(commands):
        if command.endswith((".list", ".export", ".search")):
            _require_hidden((await office.call(who, command, {"limit": 5000})).text, canaries)
    for model in MODELS:
        if f"{model}.history" in commands:
            for row in (await office.value(who, f"{model}.list", limit=10))[:10]:
                _require_hidden((await office.call(who, f"{model}.history", {"id": row["id"]})).text, canaries)
