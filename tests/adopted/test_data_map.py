"""Administrators see what agents see of each column of a connected table, and their decisions are changes of the module
text, with an audit entry."""

import asyncio
import fcntl
import json
import os
import sqlite3
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.output import Exit
from countersign.declare import Grant, text
from countersign.declare.registry import Registry
from countersign.declare.text_file import Replacement
from countersign.kernel.errors import NotFound
from countersign.records import base_models
from countersign.records.access.view import Caller
from countersign.records.audit import verify
from countersign.records.commands.errors import BadInput, TryAgain
from tests.adopted.shop import MARK, Shop, open_shop
from tests.servers.countersign import COMMAND, environment

TABLES = f"""
CREATE TABLE country (code TEXT PRIMARY KEY NOT NULL, title TEXT);
CREATE TABLE customer (
    id INTEGER PRIMARY KEY,
    first_name TEXT,
    email TEXT,
    note TEXT,
    born DATE,
    active BOOLEAN,
    country TEXT REFERENCES country,
    password TEXT
);
INSERT INTO customer VALUES (1, 'Ada {MARK}', 'ada{MARK}@example.com', 'calls {MARK}', '1985-12-10', 1, NULL, 'x');
"""
ROWS = "SELECT command, user_id, changes FROM audit_entry WHERE command = 'setting.decide' ORDER BY number"


def connect(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command for the module text in the folder."""
    return subprocess.run(
        [*COMMAND, "connect", *arguments], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )


@dataclass
class MappedShop:
    """The service over a shop whose module text is a file."""

    shop: Shop
    file: Path
    root: Caller

    async def map(self) -> dict[str, Any]:
        """Return the data map with the fields of the customer by name."""
        found = await self.shop.inside.value(self.root, "setting", "data_map")
        (customer,) = (each for each in found["models"] if each["model"] == "customer")
        return {**found, "customer": customer, "fields": {each["name"]: each for each in customer["fields"]}}

    async def decide(self, name: str, decision: str, **others: object) -> dict[str, Any]:
        """Decide on a field of the customer, as it is now."""
        revision = (await self.map())["fields"][name]["revision"]
        body = {"field": f"customer.{name}", "decision": decision, "reason": "looked at it", "revision": revision}
        return await self.shop.inside.value(self.root, "setting", "decide", **{**body, **others})

    async def refusal(self, name: str, decision: str, **others: object) -> str:
        """Return the text of a refused decision, after a check that it changed nothing."""
        before = self.file.read_bytes()
        with pytest.raises(BadInput) as raised:
            await self.decide(name, decision, **others)
        assert self.file.read_bytes() == before
        assert not list(self.file.parent.glob("*.unfinished"))
        assert await self.shop.inside.rows(ROWS) == []
        return raised.value.detail


@asynccontextmanager
async def opened(folder: Path, start: str) -> AsyncGenerator[MappedShop]:
    """Start a service with the module text in the folder."""
    file = folder / "shop.py"
    module = text.build(text.read(file.read_text()), str(file))
    (folder / start).mkdir()
    async with open_shop(f"sqlite:///{folder / 'shop.db'}", folder / start, Registry([base_models.MODULE, module])) as (
        shop
    ):
        yield MappedShop(shop, file, await shop.inside.member())


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[MappedShop]:
    """Return a shop whose module text was written by `countersign connect`."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript(TABLES)
    assert connect(tmp_path, "sqlite:///shop.db").returncode == Exit.OK
    async with opened(tmp_path, "first") as found:
        yield found


def shown(field: dict[str, Any]) -> tuple[str, str]:
    """Return what agents see of the field now, and after the next start."""
    return tuple(each["label"] or each["see"] for each in (field["agents_see"], field["after_restart"]))  # type: ignore[return-value]


async def test_the_map_says_what_agents_see_of_each_column_and_why(shop: MappedShop) -> None:
    found = await shop.map()

    fields = found["fields"]
    assert (shown(fields["email"]), fields["email"]["state"]) == (("EMAIL", "EMAIL"), "guessed")
    assert fields["email"]["why"].startswith("name")
    assert (shown(fields["note"]), fields["note"]["state"]) == (("TEXT", "TEXT"), "undecided")
    assert fields["note"]["choices"] == ["personal", "clear", "hidden"]
    assert (shown(fields["born"]), fields["born"]["choices"]) == (("nothing", "nothing"), ["hidden"])
    assert (shown(fields["password"]), fields["password"]["why"]) == (("nothing", "nothing"), "secret")
    assert (fields["password"]["choices"], fields["country"]["choices"]) == ([], [])
    listed = json.loads(connect(shop.file.parent, "review", "--json", "shop.py").stdout)["look"]
    undecided = [each["field"] for model in found["models"] for each in model["fields"] if each["state"] == "undecided"]
    assert undecided == [each["column"] for each in listed]
    assert (found["undecided"], found["decided"]) == (len(listed), 0)
    assert (found["is_restart_needed"], found["customer"]["is_suspended"]) == (False, False)
    assert (found["customer"]["table"], found["customer"]["file"]) == ("customer", str(shop.file))
    assert MARK not in json.dumps(found)


async def test_a_decision_is_written_into_the_module_text_and_takes_effect_with_the_next_start(
    shop: MappedShop, tmp_path: Path
) -> None:
    before = await shop.map()

    cleared = await shop.decide("note", "clear", confirmed=True)
    hidden = await shop.decide("email", "hidden")
    relabelled = await shop.decide("first_name", "personal", label="GIVENNAME")

    found = await shop.map()
    assert (found["undecided"], found["decided"]) == (before["undecided"] - relabelled_count(before), 3)
    assert (found["undecided"], found["decided"]) == (relabelled["undecided"], relabelled["decided"])
    assert shown(cleared["field"]) == ("TEXT", "values")
    assert shown(hidden["field"]) == ("EMAIL", "nothing")
    assert shown(relabelled["field"])[1] == "GIVENNAME"
    assert (cleared["takes_effect"], found["is_restart_needed"]) == ("after_restart", True)
    assert "start the server again" in cleared["effect"]
    note = found["fields"]["note"]
    assert (note["state"], note["why"], note["decided_by"]) == ("decided", "looked at it", "root")
    assert f"# decided by root on {note['decided_on']}: looked at it\n" in shop.file.read_text()
    assert "email" in found["fields"]

    # The commands for the module text agree with it.
    assert connect(tmp_path, "check", "shop.py", "sqlite:///shop.db").returncode == Exit.OK
    assert connect(tmp_path, "diff", "shop.py", "sqlite:///shop.db", "--exit-code").returncode == Exit.OK
    assert "customer.note" not in connect(tmp_path, "review", "shop.py").stdout

    async with opened(tmp_path, "second") as again:
        headers = {"Authorization": f"Bearer {await again.shop.token_of(again.root)}"}
        rows = (await again.shop.http.post("/api/customer/list", json={}, headers=headers)).json()["value"]
        assert rows[0]["note"] == f"calls {MARK}"
        assert rows[0]["first_name"].startswith("GIVENNAME_")
        assert "email" not in rows[0]
        assert (await again.map())["is_restart_needed"] is False


def relabelled_count(before: dict[str, Any]) -> int:
    """Return how many of the fields that a test decides on were undecided."""
    return sum(before["fields"][name]["state"] == "undecided" for name in ("note", "email", "first_name"))


async def test_a_hidden_field_can_be_shown_again(shop: MappedShop) -> None:
    written = shop.file.read_text()
    await shop.decide("note", "hidden")

    assert "LongText(" not in shop.file.read_text().partition("# note: left out: hidden")[0].rpartition("class")[2]
    refused = await asyncio.gather(shop.decide("note", "clear"), return_exceptions=True)
    tokens = await asyncio.gather(shop.decide("note", "personal"), return_exceptions=True)
    found = await shop.decide("note", "personal", confirmed=True)

    assert isinstance(refused[0], BadInput)
    assert "agents would see tokens for the values of customer.note, of which they see nothing now" in str(tokens[0])
    assert "send confirmed: true" in refused[0].detail
    assert shown(found["field"]) == ("TEXT", "TEXT")
    assert found["takes_effect"] == "now"
    line = next(each for each in written.splitlines() if each.startswith("    note = ")).partition("  #")[0]
    assert f"{line}  # decided by root on " in shop.file.read_text()


async def test_values_are_shown_to_agents_only_after_a_confirmation(shop: MappedShop) -> None:
    assert "agents would read the values of customer.note" in await shop.refusal("note", "clear")
    assert "agents would read" in await shop.refusal("note", "clear", confirmed=False)

    await shop.decide("active", "clear")
    await shop.decide("note", "clear", confirmed=True)

    entries = await shop.shop.inside.rows(ROWS)
    changes = [json.loads(each[2]) for each in entries]
    assert [each[1] for each in entries] == [shop.root.user_id] * 2
    assert [each["title"] for each in changes] == [[None, "customer.active"], [None, "customer.note"]]
    before, after = (json.loads(each) for each in changes[1]["value"])
    assert before == {"agents_see": "TEXT_…", "state": "undecided"}
    assert after["widens"] is True
    assert (after["agents_see"], after["decision"], after["reason"]) == ("its values", "clear", "looked at it")
    assert json.loads(changes[0]["value"][1])["widens"] is False
    records = shop.shop.inside.service.records
    assert (await verify.verify(records.database, records.secret)).is_intact


@pytest.mark.parametrize(
    ("name", "decision", "others", "said"),
    [
        ("born", "clear", {"confirmed": True}, "cannot be clear (possible: hidden)"),
        ("password", "hidden", {}, "possible: none: edit the module text"),
        ("active", "personal", {}, "cannot be personal (possible: clear, hidden)"),
        ("note", "show", {}, "decision must be one of personal, clear, hidden"),
        ("note", "hidden", {"reason": " "}, "reason must be a text"),
        ("note", "hidden", {"reason": "x" * 501}, "reason must be a text"),
        ("note", "personal", {"label": "no label"}, "label must be"),
        ("note", "hidden", {"label": "NOTE"}, "label must be"),
        ("note", "hidden", {"confirmed": "yes"}, "confirmed must be true or false"),
        ("note", "hidden", {"field": "customer.nothing"}, "no connected table has the field customer.nothing"),
        ("note", "hidden", {"revision": None}, "must be strings"),
        ("note", "hidden", {"force": True}, "unknown key force"),
    ],
)
async def test_an_impossible_decision_changes_nothing(
    shop: MappedShop, name: str, decision: str, others: dict[str, object], said: str
) -> None:
    assert said in await shop.refusal(name, decision, **others)


async def test_a_decision_on_a_column_that_has_changed_since_is_refused(shop: MappedShop) -> None:
    revision = (await shop.map())["fields"]["note"]["revision"]
    await shop.decide("email", "personal", label="MAIL")
    # A decision on another column does not matter.
    await shop.decide("note", "personal", revision=revision)

    with pytest.raises(TryAgain, match="note has changed in shop"):
        await shop.decide("note", "hidden", revision=revision)

    assert len(await shop.shop.inside.rows(ROWS)) == 2


async def test_two_decisions_at_a_time_are_both_written_or_refused(shop: MappedShop) -> None:
    names = ("note", "email", "first_name", "active")
    found = await asyncio.gather(*(shop.decide(each, "hidden") for each in names), return_exceptions=True)

    refused = [each for each in found if isinstance(each, BaseException)]
    assert all(isinstance(each, TryAgain) for each in refused), refused
    assert shop.file.read_text().count("hidden, decided by root") == len(names) - len(refused)
    assert len(await shop.shop.inside.rows(ROWS)) == len(names) - len(refused)
    assert not list(shop.file.parent.glob("*.unfinished"))


async def test_a_file_that_another_process_writes_is_not_waited_for(shop: MappedShop) -> None:
    with shop.file.open("rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        assert "another process is writing" in await shop.refusal("note", "hidden")


async def test_a_file_that_an_editor_saves_meanwhile_is_not_overwritten(
    shop: MappedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = f"{shop.file.read_text()}\n# A line of an editor.\n"

    def save_first(path: Path, *arguments: str, waits: bool) -> Replacement:
        path.write_text(written)
        return Replacement(path, *arguments, waits=waits)

    monkeypatch.setattr("countersign.records.data_map.Replacement", save_first)

    with pytest.raises(TryAgain, match="has changed since it was read"):
        await shop.decide("note", "hidden")

    assert shop.file.read_text() == written


async def test_a_file_that_cannot_be_written_names_the_remedy(
    shop: MappedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "fsync", refuse)

    text_of_refusal = await shop.refusal("note", "hidden")

    assert "cannot be written as the user" in text_of_refusal
    assert "countersign connect review" in text_of_refusal


async def test_a_decision_without_its_audit_entry_is_not_written(
    shop: MappedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("the audit cannot be written")

    before = shop.file.read_text()
    monkeypatch.setattr("countersign.records.data_map.record_writer.record_audit", fail)

    with pytest.raises(RuntimeError):
        await shop.decide("note", "clear", confirmed=True)

    assert shop.file.read_text() == before
    assert not list(shop.file.parent.glob("*.unfinished"))


async def test_a_decision_that_violates_a_rule_is_not_written(shop: MappedShop) -> None:
    content = shop.file.read_text()
    grants = content.index('Grant(model="customer"')
    end = content.index("),\n", grants)
    replaced = f'{content[:grants]}Grant(model="customer", commands=("list",), masked=("note",)'
    shop.file.write_text(f"{replaced}{content[end:]}")

    refusal = await shop.refusal("note", "clear", confirmed=True)

    assert "customer.note masked, which has no tokens" in refusal
    assert "Nothing is written" in refusal


async def test_a_line_that_was_taken_out_of_the_file_is_shown_until_the_next_start(shop: MappedShop) -> None:
    lines = shop.file.read_text().splitlines(keepends=True)
    shop.file.write_text("".join(each for each in lines if not each.startswith("    active = ")))

    found = await shop.map()

    assert shown(found["fields"]["active"]) == ("values", "nothing")
    assert found["is_restart_needed"] is True
    assert "no connected table has the field" in await shop.refusal("active", "hidden", revision="x")


async def test_a_model_whose_policies_need_a_value_of_the_administrator_is_not_suspended(shop: MappedShop) -> None:
    view = replace(shop.root.view, models=shop.root.view.stored)
    root = replace(shop.root, view=view, withheld={"customer": "the policies need user.tenant"})

    found = await shop.shop.inside.value(root, "setting", "data_map")

    states = {each["model"]: each["is_suspended"] for each in found["models"]}
    assert (states["customer"], states["country"]) == (False, True)


async def test_a_file_that_cannot_be_read_is_named(shop: MappedShop) -> None:
    shop.file.write_text("import os")

    with pytest.raises(BadInput, match=r"shop\.py: line 1: "):
        await shop.map()


async def test_only_administrators_have_the_commands(shop: MappedShop) -> None:
    inside = shop.shop.inside
    person = await inside.person(Grant(model="setting", commands="*", clear="*", write="*"))
    agent = await inside.agent("scout")

    for caller in (person, agent):
        for name in ("data_map", "decide"):
            with pytest.raises(NotFound):
                await inside.value(caller, "setting", name)
    assert "setting" in person.view.models
