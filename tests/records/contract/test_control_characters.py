"""No text in an input may contain a control character other than tab and newline, or half of a surrogate pair."""

import json
from collections.abc import Callable, Mapping

import pytest

from tests.records.office import Office

CHARACTERS = [chr(code) for code in range(32) if chr(code) not in "\t\n\r"]
SAMPLE = ("\0", "\x07", "\x1b", "\ud83d")
PLACES: Mapping[str, Callable[[str], object]] = {
    "/api/lead/create": lambda text: {"title": text},
    "/api/lead/update": lambda text: {"id": "0" * 24, "notes": text},
    "/api/lead/import": lambda text: {"csv": f'title\n"{text}"\n'},
    "/api/lead/list": lambda text: {"filter": [{"field": "title", "op": "eq", "value": text}]},
    "/api/lead/search": lambda text: {"filter": [{"field": "title", "op": "contains", "value": text}]},
    "/api/plan/reject": lambda text: {"id": "0" * 24, "reason": text},
    "/api/plan/propose": lambda text: {"steps": [{"command": "lead.create", "input": {"title": "x"}}], "why": text},
    "/api/auth/agent-token": lambda text: {"scopes": ["lead.*"], "label": text},
}


@pytest.mark.parametrize("path", PLACES)
async def test_a_control_character_is_refused_in_every_text(office: Office, path: str, *, is_full: bool) -> None:
    for character in [*CHARACTERS, *SAMPLE] if is_full else SAMPLE:
        body = json.dumps(PLACES[path](f"a{character}b"))
        headers = {**office.headers("alice"), "Content-Type": "application/json"}
        answer = await office.http.post(path, content=body, headers=headers)
        is_row = answer.status_code == 200 and answer.json()["value"].get("errors")
        assert answer.status_code == 400 or is_row, (character, answer.text)


async def test_a_control_character_is_refused_in_the_note_of_an_approval(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="x")
    plan = await office.proposed(await office.agent("alice", "lead.*"), "lead.delete", id=lead["id"])

    assert (await office.approve("alice", plan, note="a\x1bb")).status_code == 400
    assert (await office.approve("alice", plan, note="a\tb\nc")).status_code == 200


async def test_tab_and_newline_stay_and_carriage_returns_become_newlines(office: Office) -> None:
    lead = await office.value("alice", "lead.create", title="x", notes="a\tb\r\nc\rd\n")

    assert lead["notes"] == "a\tb\nc\nd\n"
