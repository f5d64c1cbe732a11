"""Two existing databases that differ only in what one caller may not see, each with a service over it, and requests
about their tables. Other applications write to both databases between the requests."""

import os
import re
import shutil
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Literal
from unittest.mock import patch

import apsw
import httpx
import psycopg

from countersign.declare import Declared
from countersign.declare.registry import Registry
from countersign.kernel import clock, ids
from countersign.kernel.security import passwords
from countersign.records import app, user_creation
from countersign.records.access.view import Caller, View
from countersign.records.commands.run import Actor, Run
from countersign.records.masking import seen_values
from countersign.settings import Settings
from tests.records.office import ROOT_URL
from tests.records.worlds.asking import GeneratedRequest, RequestSequence
from tests.records.worlds.building import PASSWORD, STARTED, OpenWorld, Variant, salt_anew
from tests.records.worlds.comparing import (
    MANY_TOKENS,
    MOST_KINSHIP,
    ComparisonCounts,
    ResponsesDiffer,
    TokenRenaming,
    WorldComparison,
    look,
)
from tests.records.worlds.transports import ResponseMeaning, Transport
from tests.servers.countersign import MASTER_KEY

Audience = Literal["everything", "limited"]
"""The caller that must not notice a difference: an agent of an administrator, which sees tokens for personal values, or
one with a role that hides rows, fields and a model."""

MODELS = ("region", "customer", "purchase", "line")
CUSTOMERS, PURCHASES = 24, 40
BUSY_MS = 2_000
WRITE_EVERY = 3
"""The number of requests after which another application writes."""

MODULE = '''"""A shop."""

from countersign.declare import (
    Bool, Date, Decimal, Grant, LongText, Model, Module, Money, Number, Ref, Role, Select, Table, Text, where
)


class Region(Model, table=Table("region", key="code")):
    """A region."""

    title = Text()
    area = Number()


class Customer(Model, table=Table("customer", key="id", rows_about=24)):
    """A customer."""

    name = Text(personal="PERSON")
    email = Text(personal="EMAIL")
    phone = Text(personal="PHONE")
    ssn = Text(personal="TEXT", linked=False)
    note = LongText(personal="TEXT")
    visits = Number()
    active = Bool()
    status = Select("active", "blocked", unknown="other")
    region = Ref("region", columns="region")
    joined = Date()
    balance_minor = Money(column="balance")
    rating = Decimal()


class Purchase(Model, table=Table("purchase", key="id")):
    """A purchase."""

    customer = Ref("customer", columns="customer")
    day = Date()
    total_minor = Money(column="total")
    state = Select("open", "paid", "void")
    memo = Text(personal="TEXT")


class Line(Model, table=Table("line", key=("purchase", "number"))):
    """A line of a purchase."""

    purchase = Ref("purchase", columns="purchase")
    title = Text()
    maker = Text(personal="PERSON")


module = Module(
    "shop",
    version="1.0.0",
    models=(Region, Customer, Purchase, Line),
    search_path=("public",),
    roles=(
        Role(
            "limited",
            Grant(model="region", clear="*"),
            Grant(
                model="customer",
                clear=("active", "status", "region", "joined"),
                masked=("name", "email", "note"),
                rows=(where("status", eq="active"),),
            ),
            Grant(
                model="purchase",
                clear=("customer", "day", "state"),
                masked=("memo",),
                rows=(where("state", ne="void"),),
            ),
        ),
    ),
)
'''

TABLES = """
CREATE TABLE region (code varchar(10) PRIMARY KEY NOT NULL, title text, area integer);
CREATE TABLE customer (
    id integer PRIMARY KEY{counts_up} NOT NULL, name text, email text, phone text, ssn text, note text, visits integer,
    active boolean, status text, region varchar(10) REFERENCES region, joined date, balance numeric(10, 2),
    rating numeric(8, 4), password text
);
CREATE TABLE purchase (
    id {uuid} PRIMARY KEY NOT NULL, customer integer REFERENCES customer, day date, total numeric(10, 2),
    state varchar(10), memo text
);
CREATE TABLE line (
    purchase {uuid} NOT NULL REFERENCES purchase, number smallint NOT NULL, title text, maker text,
    PRIMARY KEY (purchase, number)
);
"""
_CUSTOMER = """
INSERT INTO customer (
    id, name, email, phone, ssn, note, visits, active, status, region, joined, balance, rating, password
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_PURCHASE = "INSERT INTO purchase VALUES (?, ?, ?, ?, ?, ?)"

GUESSES = ("Ada Lovelace 3", "Zoë-231 née Õ'Brien", "contact1@a.example", "+43 1 2", "Likes tea", "Ada", "a.example")


class ExistingFile:
    """An existing database that other applications write."""

    def __init__(self, url: str) -> None:
        self.url = url
        if url.startswith("sqlite"):
            # This is the library of the service: another library in the same process would take back its locks.
            self._connection: apsw.Connection | psycopg.Connection = apsw.Connection(url.removeprefix("sqlite:///"))
            self._connection.set_busy_timeout(BUSY_MS)
        else:
            self._connection = psycopg.connect(url, autocommit=True)

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a SQLite file."""
        return isinstance(self._connection, apsw.Connection)

    def write(self, statement: str, *values: object) -> None:
        """Run a statement with values for its question marks."""
        if isinstance(self._connection, apsw.Connection):
            self._connection.execute(statement, tuple(map(_sqlite_value, values)))
        else:
            self._connection.execute(statement.replace("?", "%s").encode(), values or None)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _sqlite_value(value: object) -> int | float | str | None:
    return value if isinstance(value, int | float | str) else None


@dataclass
class Writer:
    """Other applications that write one of the databases."""

    database: ExistingFile
    variant: Variant
    audience: Audience
    turn: int = 0

    @property
    def is_b(self) -> bool:
        """Whether this is the second database."""
        return self.variant == "b"

    def personal(self, first: str, second: str) -> str:
        """Return a personal value, which differs in world b."""
        return second if self.is_b else first

    def hidden(self, first: object, second: object) -> object:
        """Return a value that only a limited caller does not see. It differs in world b for this caller."""
        return second if self.is_b and self.audience == "limited" else first

    def create_tables(self) -> None:
        """Create the tables."""
        counts_up = " AUTOINCREMENT" if self.database.is_sqlite else ""
        uuid = "text" if self.database.is_sqlite else "uuid"
        for statement in TABLES.format(uuid=uuid, counts_up=counts_up).split(";\n"):
            if statement.strip():
                self.database.write(statement)

    def create_rows(self) -> None:
        """Create the rows."""
        for code, title, area in (("AT", "Austria", 84), ("JP", "日本", 378), ("PE", "Perú", None)):
            self.database.write("INSERT INTO region VALUES (?, ?, ?)", code, title, area)
        for number in range(CUSTOMERS):
            self.customer(number)
        for number in range(PURCHASES):
            self.purchase(number)
        if self.is_b and self.audience == "limited":
            for number in range(9):
                self.blocked(number)
                values = (_uuid(500 + number), 10 * number, "2026-11-05", 5, "void", "Ada Lovelace 1")
                self.database.write(_PURCHASE, *values)

    def customer(self, number: int) -> None:
        """Create a customer. Every fourth is hidden from a limited caller."""
        is_seen = number % 4 != 3
        note = self.personal(f"Likes tea {number}", f"EMAIL_12 wants a call. {number} " * 90)
        surname = "x" * 1_200 if number % 5 == 0 else "née Õ'Brien"
        self.database.write(
            _CUSTOMER,
            10 * number,
            self.personal(f"Ada Lovelace {number}", f"Zoë-{number * 77} {surname}"),
            self.personal(f"contact{number % 7}@a.example", f"{number % 7}.someone.else@elsewhere.example"),
            self.personal(f"+43 1 {number % 5}", f"+1 (555) 000-{number % 5:04d}"),
            self.personal(f"1234 0101{number:02d}", f"{number}"),
            note if number % 3 else None,
            self.hidden(number % 6, 5000 - number),
            number % 3 != 1,
            "active" if is_seen else "blocked",
            ("AT", "JP", None)[number % 3],
            f"2026-11-{number + 1:02d}" if is_seen else self.hidden("2026-11-05", None),
            self.hidden(number * 10.5, 7),
            self.hidden(f"{number}.5", "0.125"),
            self.personal("tea", "biscuits"),
        )

    def purchase(self, number: int) -> None:
        """Create a purchase with a line. Every fifth is hidden from a limited caller."""
        customer: object = 10 * (number % CUSTOMERS)
        if number % CUSTOMERS % 4 == 3:
            # The limited caller does not see this customer, so the ref is empty.
            customer = self.hidden(customer, None if number % 2 else 10 * ((number + 4) % CUSTOMERS))
        state = "void" if number % 5 == 4 else ("open", "paid")[number % 2]
        total, memo = self.hidden(number * 3.25, 9999), self.personal(f"Gift for Ada {number % 6}", f"{number % 6}")
        self.database.write(_PURCHASE, _uuid(number), customer, f"2026-11-{number % 27 + 1:02d}", total, state, memo)
        title, maker = self.hidden(("Tea", "Cup")[number % 2], "Pot"), self.personal("Grace", f"Katherine {'x' * 40}")
        self.database.write("INSERT INTO line VALUES (?, ?, ?, ?)", _uuid(number), number % 3, title, maker)

    def blocked(self, number: int) -> None:
        """Create a customer that a limited caller does not see. Some of its values are those of visible customers."""
        values = (f"Ada Lovelace {number}", f"contact{number % 7}@a.example", "+43", "0", "Hidden note", 4, True)
        rest = ("blocked", "AT", "2026-11-05", 3, "1.5", "x")
        self.database.write(_CUSTOMER, 10 * number + 5, *values, *rest)

    def step(self) -> None:
        """Run the next write. Both databases run the same number of steps."""
        turn, self.turn = self.turn, self.turn + 1
        steps = _STEPS + (_HIDDEN_STEPS if self.audience == "limited" else ())
        steps[turn % len(steps)](self, turn // len(steps))


def _uuid(number: int) -> str:
    return f"5b0c0b52-3a3e-4a0a-8f0e-{number:012d}"


def _rename_customer(world: Writer, turn: int) -> None:
    """Give a visible customer a new name and address, which a second customer then gets too."""
    name = world.personal(f"Renamed {turn}", f"Renamed, the {turn}th" + "y" * (turn % 3 * 500))
    for key in (10 * (turn % CUSTOMERS), 10 * ((turn + 5) % CUSTOMERS)):
        email = world.personal(f"renamed{turn}@a.example", f"{turn}@b.example")
        world.database.write("UPDATE customer SET name = ?, email = ? WHERE id = ?", name, email, key)


def _clear_note(world: Writer, turn: int) -> None:
    """Remove a note, and write another one."""
    world.database.write("UPDATE customer SET note = NULL WHERE id = ?", 10 * (turn % CUSTOMERS))
    note = world.personal(f"Call {turn}", f"{turn}" * 700)
    world.database.write("UPDATE customer SET note = ? WHERE id = ?", note, 10 * ((turn + 7) % CUSTOMERS))


def _restore_name(world: Writer, turn: int) -> None:
    """Change a name and change it back."""
    for name in (world.personal("Away", "Gone away"), world.personal("Back again", "Here")):
        world.database.write("UPDATE customer SET name = ? WHERE id = ?", name, 10 * (turn % 3))


def _replace_purchase(world: Writer, turn: int) -> None:
    """Delete a purchase that a limited caller sees, and add one."""
    number = 600 + turn
    world.database.write("DELETE FROM purchase WHERE id = ?", _uuid(number - 3))
    memo = world.personal(f"Note {turn}", f"A longer remark about a person, {turn}")
    world.database.write(_PURCHASE, _uuid(number), 10 * (turn % 3), "2026-11-20", 12.5, "open", memo)


def _change_clear_values(world: Writer, turn: int) -> None:
    """Change fields that everyone reads in clear, in the same way in both databases."""
    key = 10 * (turn % 3)
    world.database.write("UPDATE customer SET active = NOT active, joined = '2026-11-11' WHERE id = ?", key)
    world.database.write("UPDATE region SET area = ? WHERE code = 'AT'", turn)


def _change_what_no_one_sees(world: Writer, turn: int) -> None:
    """In world b, write a column that is no field, write rows without a change, and add a column."""
    if world.is_b:
        world.database.write("UPDATE customer SET password = ?", f"secret {turn}")
        world.database.write("UPDATE purchase SET memo = memo")
        if turn % 20 == 0:
            world.database.write(f"ALTER TABLE customer ADD COLUMN extra_{turn} text")


def _change_hidden_fields(world: Writer, turn: int) -> None:
    """In world b, change fields of visible rows that a limited caller does not see."""
    if world.is_b:
        key = 10 * (turn % 3)
        world.database.write("UPDATE customer SET visits = ?, balance = ?, ssn = ? WHERE id = ?", turn, turn, "9", key)
        world.database.write("UPDATE purchase SET total = ? WHERE state = 'open'", turn)
        world.database.write("UPDATE line SET title = ?, maker = ?", f"Title {turn}", "Someone")


def _change_hidden_rows(world: Writer, turn: int) -> None:
    """In world b, add, change and remove customers that a limited caller does not see."""
    if world.is_b:
        world.database.write("UPDATE customer SET name = ?, visits = ? WHERE status = 'blocked'", f"Grace {turn}", turn)
        number = 300 + turn
        world.blocked(number)
        world.database.write("DELETE FROM customer WHERE id = ?", 10 * (number - 2) + 5)
        world.database.write("DELETE FROM line WHERE purchase = ?", _uuid(turn % PURCHASES))


_STEPS: tuple[Callable[[Writer, int], None], ...] = (
    _rename_customer,
    _change_what_no_one_sees,
    _clear_note,
    _restore_name,
    _replace_purchase,
    _change_clear_values,
)
_HIDDEN_STEPS: tuple[Callable[[Writer, int], None], ...] = (_change_hidden_fields, _change_hidden_rows)


@dataclass
class ConnectedWorld:
    """One of the two services, with the application that writes its existing database."""

    built: OpenWorld
    writer: Writer


@asynccontextmanager
async def open_pair(
    folder: Path, urls: tuple[str, str], audience: Audience
) -> AsyncGenerator[tuple[ConnectedWorld, ConnectedWorld]]:
    """Fill two empty databases, and open a service over each. The services have the same people, ids and secrets, but
    other token numbers."""
    module = folder / "shop.py"
    module.write_text(MODULE)
    variants: tuple[Variant, Variant] = ("a", "b")
    writers = [Writer(ExistingFile(url), variant, audience) for url, variant in zip(urls, variants, strict=True)]
    for writer in writers:
        writer.create_tables()
        writer.create_rows()
    tokens = await _people(_settings(folder / "a", module, urls[0]))
    shutil.copytree(folder / "a", folder / "b")
    try:
        async with (
            _served(_settings(folder / "a", module, urls[0]), "a", tokens) as first,
            _served(_settings(folder / "b", module, urls[1]), "b", tokens) as second,
        ):
            await salt_anew(second.service)
            yield ConnectedWorld(first, writers[0]), ConnectedWorld(second, writers[1])
    finally:
        for writer in writers:
            writer.database.close()


@asynccontextmanager
async def open_writable_pair(
    folder: Path, new_url: Callable[[str], str], audience: Audience
) -> AsyncGenerator[tuple[ConnectedWorld, ConnectedWorld]]:
    """Do what `open_pair` does for tables that agents propose to write. On PostgreSQL, the tables of the service are in
    the same database. `new_url` copies a database, so both services have the same people and secrets."""
    module = folder / "shop.py"
    module.write_text(_writable_module())
    first_url = new_url("template0")
    first = Writer(ExistingFile(first_url), "a", audience)
    first.create_tables()
    # Rows that exist in one of the worlds alone must not change the keys of new rows.
    if first.database.is_sqlite:
        first.database.write("INSERT INTO sqlite_sequence VALUES ('customer', 10000)")
    else:
        first.database.write("ALTER TABLE customer ALTER id ADD GENERATED BY DEFAULT AS IDENTITY (START WITH 10001)")
    first.database.close()
    tokens = await _people(_settings(folder / "a", module, first_url, is_shared=True))
    shutil.copytree(folder / "a", folder / "b")
    urls = (first_url, new_url(first_url.rpartition("/")[2]))
    variants: tuple[Variant, Variant] = ("a", "b")
    writers = [Writer(ExistingFile(url), variant, audience) for url, variant in zip(urls, variants, strict=True)]
    for writer in writers:
        writer.create_rows()
    # The number of values that are new to the vault differs, so their keys must not shift the ids of plans.
    unseeded = SimpleNamespace(random_bytes=os.urandom)
    try:
        async with (
            _served(_settings(folder / "a", module, urls[0], is_shared=True), "a", tokens) as one,
            _served(_settings(folder / "b", module, urls[1], is_shared=True), "b", tokens) as other,
        ):
            await salt_anew(other.service)
            with patch.object(seen_values, "random_ids", unseeded):
                yield ConnectedWorld(one, writers[0]), ConnectedWorld(other, writers[1])
    finally:
        for writer in writers:
            writer.database.close()


def _writable_module() -> str:
    text = MODULE.replace('key="id"', 'key="id", writable=True')
    fields = '"name", "email", "note", "active", "status", "region", "joined"'
    write = f'commands="*", write=({fields}), rows=(where("status"'
    text = text.replace('rows=(where("status"', write)
    return text.replace('rows=(where("state"', 'commands="*", write=("customer", "day", "memo"), rows=(where("state"')


def _settings(data: Path, module: Path, url: str, *, is_shared: bool = False) -> Settings:
    return Settings(
        data=str(data),
        modules=str(module),
        existing_url=url,
        database_url=url if is_shared and not url.startswith("sqlite") else "",
        master_key=MASTER_KEY,
        reserve_mib=0,
        accept_wide_rights=True,
    )


@asynccontextmanager
async def _served(settings: Settings, variant: Variant, tokens: dict[str, str]) -> AsyncGenerator[OpenWorld]:
    async with app.open_records(settings, ROOT_URL, is_loopback=True) as service:
        transport = httpx.ASGITransport(app.create(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as http:
            yield OpenWorld(service, http, variant, tokens=dict(tokens))


async def _people(settings: Settings) -> dict[str, str]:
    """Create an administrator and a person with the limited role, and return the tokens of an agent of each."""
    hashed = await passwords.hash_password(PASSWORD)
    tokens: dict[str, str] = {}
    async with _served(settings, "a", {}) as world:
        with clock.fixed(STARTED):
            async with world.service.records.database.transaction() as transaction:
                nobody = Caller("person", "", "", "", View({}))
                run = Run(world.service.engine, nobody, transaction, Actor("0" * 24, request_id="made"), transaction)
                for name, role in (("everything", "administrator"), ("limited", "limited")):
                    await user_creation.add_user(run, name, name.title(), None, [role], hashed)
            for name in ("everything", "limited"):
                signed_in = await world.http.post("/api/auth/login", json={"username": name, "password": PASSWORD})
                world.tokens["person"] = signed_in.json()["token"]
                issued = await world.call("person", "/api/auth/agent-token", {"scopes": ["*"], "label": "scout"})
                tokens[name] = issued.json()["token"]
                tokens[f"person {name}"] = world.tokens["person"]
    return tokens


class ConnectedRequests(RequestSequence):
    """An endless sequence of requests about connected tables."""

    def __init__(self, registry: Registry, seed: int) -> None:
        super().__init__(registry, seed, is_agent=True, models=MODELS)
        self.proposed = 0
        self.known.ids = {name: [] for name in MODELS} | {"plan": ["0" * 24, "x"]}
        self._kinds = [
            (24, self._list),
            (12, self._search),
            (10, self._get),
            (6, self._count_by),
            (6, self._export),
            (8, self._related),
            (8, self._series),
            (5, self._other),
            (4, self._crooked),
            (5, self._find),
            (7, self._guessed_filter),
            (2, self._audit),
            (2, self._update),
            (1, self._create),
            (1, self._history),
        ]

    def _find(self, _: Declared) -> GeneratedRequest:
        """Return a search for a record of any model by its name."""
        return GeneratedRequest("/api/user/find", {"q": self._pick(*GUESSES, "Tea", "Austria", self._token())})

    def _guessed_filter(self, model: Declared) -> GeneratedRequest:
        """Return a request that compares a personal field with a value that some record of one world may have."""
        names = [name for name, each in model.fields.items() if each.personal] or ["title"]
        operator = self._pick("eq", "ne", "in", "contains", "gt", "is_null")
        value: object = self._pick(*GUESSES, self._token())
        value = [value] if operator == "in" else value is not None if operator == "is_null" else value
        body = {"filter": [{"field": self._pick(*names), "op": operator, "value": value}]}
        return GeneratedRequest(f"/api/{model.name}/{self._pick('list', 'search', 'export')}", body)


class WritingRequests(ConnectedRequests):
    """An endless sequence of requests about connected tables, many of which write tokens."""

    def __init__(self, registry: Registry, seed: int) -> None:
        super().__init__(registry, seed)
        writing: list[tuple[int, Callable[[Declared], GeneratedRequest]]] = [
            (40, self._copy),
            (20, self._update),
            (12, self._create),
            (10, self._plans),
            (8, self._history),
            (6, self._propose),
            (6, self._launder),
            (6, self._repeat),
        ]
        self._kinds += writing

    def _copy(self, _: Declared) -> GeneratedRequest:
        """Return an update or a creation of a customer with tokens, with new values, or with values that a record of
        one world may have."""
        body = {name: self._written(label) for name, label in self._pick(*_WRITTEN).items()}
        if self._chances(20):
            return GeneratedRequest("/api/customer/create", {**body, "active": True, "status": "active"})
        return GeneratedRequest("/api/customer/update", {**body, "id": self._pick(*self.known.seen["customer"])})

    def _written(self, label: str) -> str:
        """Return a value for a personal field."""
        if self._chances(60):
            return self._new_token(label)
        guesses = _GUESSES_BY_LABEL[label]
        text = self._chance.choice(guesses).format(self._chance.randrange(12))
        return f"Ask {self._new_token('PERSON')}: {text}" if label == "TEXT" and self._chances(30) else text

    def _new_token(self, label: str) -> str:
        """Return one of the tokens that were seen last. Other applications have replaced many of the older values."""
        fitting = [number for number, known_label in enumerate(self.known.labels) if known_label == label]
        return f"⟦{self._pick(*fitting[-12:])}⟧" if fitting and self._chances(80) else self._token(label)


_WRITTEN: tuple[dict[str, str], ...] = (
    {"name": "PERSON"},
    {"email": "EMAIL"},
    {"name": "PERSON", "email": "EMAIL"},
    {"note": "TEXT"},
)
"""The personal fields that one request writes, with their labels."""
_GUESSES_BY_LABEL = {
    "PERSON": ("Ada Lovelace {}", "Mia New {}", "Mia New 1"),
    "EMAIL": ("contact{}@a.example", "{}.someone.else@elsewhere.example", "mia{}@new.example"),
    "TEXT": ("Likes tea {}", "A new note {}"),
}
"""Texts that records of one world have, and new ones. No step writes them: an agent sees no change if another
application writes the text that the agent has written before."""


@dataclass
class RevisionRenaming:
    """A one-to-one renaming of the revisions of world a to those of world b. A revision is a keyed hash of what the
    caller sees, so it differs where the tokens differ."""

    there: dict[str, str] = field(default_factory=dict[str, str])
    back: dict[str, str] = field(default_factory=dict[str, str])

    def canonical(
        self, asked: GeneratedRequest, answers: Sequence[httpx.Response], meanings: Sequence[ResponseMeaning]
    ) -> list[str]:
        """Return the bodies with 0 in place of each revision.

        Raises:
            ResponsesDiffer: the revisions of the worlds are not those of the same records.
        """
        revisions, texts = zip(*(_without_revisions(answer) for answer in answers), strict=True)
        for mine, theirs in zip(*revisions, strict=False):
            if self.there.setdefault(mine, theirs) != theirs or self.back.setdefault(theirs, mine) != mine:
                raise ResponsesDiffer(f"{asked.path} {asked.body_text()}: the revisions {mine} and {theirs}")
        return list(texts)


_REVISION = re.compile(
    r'(\\?"revision\\?":|(?<![0-9a-f])[0-9a-f]{24,}[,;])(\d+)(?=[,;}])|(\\?"group_key\\?":\\?")([0-9a-f]{24})(?=\\?")'
)
"""A revision as a member of a record in JSON, or after the id of a record in CSV, or the key by which plans with equal
input are grouped. Both are computed from what the caller sees."""


def _without_revisions(answer: httpx.Response) -> tuple[list[str], str]:
    """Return the revisions in a body, and the body with 0 in place of each."""
    text = answer.text
    return [digits or key for _, digits, _, key in _REVISION.findall(text)], _REVISION.sub(r"\g<1>\g<3>0", text)


async def compare(
    worlds: tuple[ConnectedWorld, ConnectedWorld], who: Audience, requests: ConnectedRequests, count: int,
    transport: Transport,
) -> ComparisonCounts:
    """Send `count` requests to both worlds, while other applications write both databases. A person approves most plans
    at once.

    Raises:
        ResponsesDiffer: a response differs by more than the renaming of tokens and revisions.
    """
    pair = (worlds[0].built, worlds[1].built)
    with clock.fixed(clock.later(STARTED, seconds=30)):
        await _learn_ids(pair, requests)
        for world in reversed(pair):
            await look(world, who, requests)
    renaming = TokenRenaming(sorted(pair[0].service.records.registry.labels))
    asking = WorldComparison(pair, who, requests, transport, renaming, canonical=RevisionRenaming().canonical)
    now = clock.later(STARTED, seconds=60)
    for number in range(count):
        asked = requests.next()
        now = clock.later(now, seconds=requests.pause_s())
        if number % WRITE_EVERY == 0:
            for world in worlds:
                world.writer.step()
        with clock.fixed(now):
            await asking.ask(asked, f"request {number}")
            await _approve(pair, requests, number)
    counts = asking.counts
    counts.tokens = len(renaming.pairs)
    if counts.tokens >= MANY_TOKENS and abs(renaming.kinship()) > MOST_KINSHIP:
        raise ResponsesDiffer(f"the numbers of {counts.tokens} tokens follow each other: {renaming.kinship():.2f}")
    return counts


async def _approve(worlds: tuple[OpenWorld, OpenWorld], requests: ConnectedRequests, number: int) -> None:
    """Approve the plan of the last request in both worlds, before other applications change its record."""
    plans = requests.known.plans
    is_new = len(plans) > requests.proposed
    requests.proposed = len(plans)
    if not is_new or number % 5 == 0 or plans[-1] in plans[:-1]:
        # An equal proposal was pending. It is stale if a field that the agent does not see has changed since then.
        return
    outcomes: list[tuple[int, object]] = []
    for world in worlds:
        with ids.seeded(f"approval {number}"):
            answer = await world.call("person everything", f"/api/approve/{plans[-1]}", {})
        outcomes.append((answer.status_code, answer.json().get("error")))
    if outcomes[0] != outcomes[1]:
        raise ResponsesDiffer(f"the approvals of request {number} have the outcomes {outcomes}")


async def _learn_ids(worlds: tuple[OpenWorld, OpenWorld], requests: ConnectedRequests) -> None:
    """Read the ids of all records of both worlds, also of those that the caller does not see."""
    for model in MODELS:
        ids: dict[str, None] = {}
        for world in worlds:
            listed = await world.call("everything", f"/api/{model}/list", {})
            ids |= dict.fromkeys(_ids(listed))
        requests.known.ids[model] = [*ids, "0" * 24, "x"]


def _ids(listed: httpx.Response) -> Iterator[str]:
    return (record["id"] for record in listed.json()["value"])
