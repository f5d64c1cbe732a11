"""Creates the demonstration data: four people with well-known passwords, and the same records in every installation."""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from countersign.kernel import clock, ids
from countersign.kernel.clock import Instant
from countersign.kernel.security import passwords
from countersign.records import user_creation
from countersign.records.access.view import Caller, View
from countersign.records.commands import record_writer, workflow
from countersign.records.commands.run import Actor, Engine, Run

FIRST_NAMES = (
    "Amara", "Björn", "Chloé", "Dmitri", "Eilidh", "Farid", "Giulia", "Hannah", "Ines", "Jørgen", "Keiko", "Lukáš",
    "Maëlys", "Noor", "Oksana", "Priya", "Quentin", "Rosa", "Søren", "Tomás", "Ulla", "Vikram", "Wanjiru", "Xenia",
    "Yusuf", "Zofia",
)  # fmt: skip
LAST_NAMES = (
    "Adeyemi", "Bergström", "Castellanos", "Dvořák", "Eriksen", "Fontaine", "Grünwald", "Haddad", "Iyer", "Jankowski",
    "Kovačević", "Lindqvist", "Moretti", "Nakamura", "O'Sullivan", "Petrenko", "Quispe", "Rahman", "Şahin", "Tanaka",
    "Ueda", "Virtanen", "Wójcik", "Ximénez", "Yılmaz", "Zhao",
)  # fmt: skip
WHOLE_NAMES = (
    "María José Núñez", "Jean-Baptiste Le Goff", "Ólafur Þór Jónsson", "Anne-Sofie van der Berg", "Luiz Antônio Prado",
    "Guðrún Eva Sæmundsdóttir", "Mary Anne O'Brien", "Jean-Luc N'Diaye",
)  # fmt: skip
OTHER_NAMES = (
    "山田 花子", "李 小龍", "Анна Каренина", "Мария Шевченко", "محمد الفاسي",
    "ليلى حداد", "רות לוי", "अनीता शर्मा", "김 민준", "Ελένη Παπαδοπούλου",
)  # fmt: skip
COMPANIES = (
    "Aurora Textiles", "Baltic Timber", "Cedar & Sons", "Delta Pumps", "Elbe Logistik", "Fjord Foods", "Garonne Vins",
    "Harbour Tools", "Iberia Solar", "Juniper Labs", "Kestrel Optics", "Loire Papier", "Mistral Energie", "Nordlys AS",
    "Olive Grove", "Pampas Leather", "Quartz Audio", "Ribe Ceramics", "Summit Rope", "Tatra Ski",
)  # fmt: skip
BRANCHES = (
    "Lyon", "Gdańsk", "Porto", "Århus", "Torino", "Leipzig", "Vigo", "Brno", "Oulu", "Gent", "Graz", "Cork", "Split",
    "Malmö", "Izmir",
)  # fmt: skip
"""The places that follow company names. Two companies with the same name have different places."""
OTHER_COMPANIES = ("東京文具株式会社", "Волга Мебель", "شركة النيل للتجارة", "한강 물산")
CITIES = (
    ("Lyon", "69002", "FR"), ("Gdańsk", "80-001", "PL"), ("Porto", "4000-123", "PT"), ("Århus", "8000", "DK"),
    ("Nairobi", "00100", "KE"), ("Ōtautahi", "8011", "NZ"),
)  # fmt: skip
OTHER_CITIES = (("大阪", "530-0001", "JP"), ("Київ", "01001", "UA"))
STREETS = ("Quai des Brumes", "Rope Lane", "Lindenallee", "Calle Mayor", "Harbour Road", "ulica Długa")
LEAD_TITLES = (
    "New tills for {company}", "Spare parts, {company}", "Framework agreement with {company}", "Trial at {company}",
    "{company}: second site", "Renewal {company}", "{company} asks for a quote", "Training days, {company}",
)  # fmt: skip
NOTES = (
    "Met at the fair in Utrecht; wants an offer before the end of the quarter.",
    "Prefers to be called after four. Speaks French and Italian.",
    "Budget approved by the board 🎉; the order goes through purchasing.",
    "Has a dog called Pixel – allergic colleague should not visit.",
    "Asked twice whether VAT is included. It is not.",
)
OTHER_NOTES = (
    "前回の注文に満足。次回は色見本を持参する。",
    "Просит прислать договор на двух языках.",
    "يفضل التواصل عبر البريد الإلكتروني",
)
SUBJECTS = (
    "Printer jams after the update", "Invoice shows the wrong address", "Cannot sign in since Monday",
    "Delivery arrived damaged", "How do I export my data?", "Wrong colour delivered", "Battery drains over night",
)  # fmt: skip
PRODUCTS = (
    ("TILL-1", "Counter till", 89900), ("SCAN-2", "Hand scanner", 14950), ("ROLL-50", "Paper rolls, 50", 3990),
    ("SUPP-Y", "Support, a year", 120000), ("TRAIN-D", "Training day", 98000), ("CASE-L", "Carrying case, large", 5990),
)  # fmt: skip
SOURCES = ("web", "fair", "phone", "referral", "other")
LOST_REASONS = ("price", "went with another", "no budget this year", "no answer")


PASSWORD = "countersign-demo"
PEOPLE = (
    ("root", "Rut Oberholzer", ("administrator",)),
    ("alice", "Alice Marchetti", ("sales_manager",)),
    ("bob", "Bob Okonkwo", ("clerk",)),
    ("carol", "Carol Lindgren", ("accountant",)),
)
PEOPLE_SHOWN = (
    ("alice", "sales manager: runs and approves every lead and party command"),
    ("bob", "clerk: sees parties masked, no billing"),
    ("carol", "accountant: billing, and tax numbers of parties"),
    ("root", "administrator"),
)
PARTIES, LEADS, INVOICES, TICKETS = 200, 500, 300, 100
LATIN_PARTIES = 184
"""The first parties have names in Latin letters, so that the first rows of a list are readable with every font."""
T = TypeVar("T")

STARTED: Instant = Instant(1_788_220_800_000_000)
"""2026-09-01T00:00:00Z: the day on which the demonstration records were created."""

_PLAIN_LETTERS = str.maketrans({"ø": "o", "ı": "i", "ł": "l", "'": "", "&": ""})
_ANYBODY = 'SELECT 1 FROM "user" LIMIT 1'
_KNOWN = 'SELECT id FROM "user" WHERE username = \'alice\''
_HASH = "SELECT hash FROM password WHERE user_id = $1"


def modules_of(engine: Engine) -> frozenset[str]:
    """Return the names of the enabled modules."""
    return frozenset(module.name for module in engine.registry.modules)


async def is_open(engine: Engine) -> bool:
    """Return whether a person of the demonstration data can sign in with the well-known password."""
    row = await engine.records.database.fetch_one(_KNOWN)
    if row is None:
        return False
    hash_row = await engine.records.database.fetch_one(_HASH, row[0])
    return hash_row is not None and await passwords.verify(PASSWORD, hash_row[0])


async def seed(engine: Engine) -> bool:
    """Add the demonstration data to an empty database. Return whether the database was empty."""
    if await engine.records.database.fetch_one(_ANYBODY) is not None:
        return False
    password_hash = await passwords.hash_password(PASSWORD)
    with clock.fixed(STARTED), ids.seeded("countersign"):
        async with engine.records.database.transaction() as transaction:
            caller = Caller("person", "", "", "", View({}))
            run = Run(engine, caller, transaction, Actor("", request_id="demo"), transaction)
            await _Seeder(run).seed_all(password_hash)
    return True


def _between(smallest: int, largest: int) -> int:
    return smallest + int.from_bytes(ids.random_bytes(8)) % (largest - smallest + 1)


def _choice(items: Sequence[T]) -> T:
    return items[_between(0, len(items) - 1)]


class _Party(NamedTuple):
    """A party to refer to: a company with the person to speak to, or that person."""

    id: str
    name: str
    contact: str
    email: str
    is_company: bool


def _address_part(text: str) -> str:
    """Return the words of a text in the letters of an e-mail address: Søren Kovačević becomes soren-kovacevic."""
    decomposed_text = unicodedata.normalize("NFKD", text.lower().translate(_PLAIN_LETTERS))
    return "-".join("".join(character for character in decomposed_text if character.isascii()).split())


def _user(name: str) -> str:
    return _address_part(name).replace("-", ".")


def _item_at(items: Sequence[T], number: int) -> T:
    """Return the item that a number chooses, without a random value: the ids that follow do not change."""
    return items[number % len(items)]


def _is_other_script(number: int) -> bool:
    """Return whether the record of a number is one of the few with names that are not in Latin letters."""
    return number % 20 == 14


class _Seeder:
    """Creates the records. While it runs, ids and random values are derived from a fixed seed."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._people: dict[str, str] = {}
        self._parties: list[_Party] = []
        self._names: Counter[str] = Counter()

    async def seed_all(self, password_hash: str) -> None:
        """Create all records. The people are created first, because they own the other records."""
        for username, name, roles in PEOPLE:
            self._people[username] = await user_creation.add_user(
                self._run, username, name, f"{username}@example.com", roles, password_hash
            )
        for number in range(PARTIES):
            await self._party(number)
        for number in range(LEADS):
            await self._lead(number)
        products = [
            await self._create("product", {"sku": sku, "name": name, "unit_price_minor": price})
            for sku, name, price in PRODUCTS
        ]
        for number in range(INVOICES):
            await self._invoice(number, products)
        for number in range(TICKETS):
            await self._ticket(number)

    async def _create(self, model: str, values: Mapping[str, object], creator_id: str = "root") -> str:
        model_declaration = self._run.engine.registry.models[model]
        run = replace(self._run, actor=replace(self._run.actor, user_id=self._people[creator_id]))
        context = workflow.EffectContext(run, model_declaration, "", {}, "demo")
        return await context.create(model, **{name: value for name, value in values.items() if value is not None})

    async def _run_action(self, model: str, record_id: str, *moves: str) -> None:
        model_declaration = self._run.engine.registry.models[model]
        for name in moves:
            record = await record_writer.find(self._run, model_declaration, None, record_id)
            await workflow.perform(self._run, model_declaration, record, workflow.move_of(model_declaration, name), {})

    def _person(self) -> str:
        if _between(1, 100) <= 8:
            return _choice(WHOLE_NAMES)
        return f"{_choice(FIRST_NAMES)} {_choice(LAST_NAMES)}"

    def _companies_of(self, number: int) -> list[_Party]:
        """Return the companies that the record of a number may refer to."""
        parties = self._parties[LATIN_PARTIES:] if _is_other_script(number) else self._parties[:LATIN_PARTIES]
        return [party for party in parties if party.is_company]

    def _party_of(self, number: int) -> _Party:
        party = _choice(self._parties)
        if party not in self._parties[LATIN_PARTIES:] or _is_other_script(number):
            return party
        return _item_at(
            [
                existing_party
                for existing_party in self._parties[:LATIN_PARTIES]
                if existing_party.is_company == party.is_company
            ],
            number,
        )

    def _notes(self, number: int) -> str:
        return _choice(OTHER_NOTES if _is_other_script(number) else NOTES)

    def _phone(self) -> str:
        return f"+{_between(30, 89)} {_between(100, 999)} {_between(100_000, 999_999)}"

    def _day(self, first_day: int, last_day: int) -> str:
        return clock.rfc3339(clock.later(STARTED, seconds=_between(first_day, last_day) * 86400))[:10]

    def _known_company(self, number: int) -> _Party:
        company = _choice(COMPANIES)
        if number >= LATIN_PARTIES:
            name = f"{_item_at(OTHER_COMPANIES, number)} {number}"
            return _Party("", name, _item_at(OTHER_NAMES, number), f"contact{number}@company.example", is_company=True)
        self._names[company] += 1
        contact = f"{_item_at(FIRST_NAMES, number * 7)} {_item_at(LAST_NAMES, number * 11 + number // 26)}"
        email = f"{_user(contact)}@{_address_part(company)}.example"
        return _Party("", f"{company} {_item_at(BRANCHES, self._names[company] - 1)}", contact, email, is_company=True)

    def _known_person(self, number: int) -> _Party:
        _choice(COMPANIES)
        person = self._person()
        if number >= LATIN_PARTIES:
            name = _item_at(OTHER_NAMES, number)
            return _Party("", name, name, f"contact{number}@mail.example", is_company=False)
        return _Party("", person, person, f"{_user(person)}{number}@mail.example", is_company=False)

    async def _party(self, number: int) -> None:
        is_company = _between(0, 1) == 0
        known_values = self._known_company(number) if is_company else self._known_person(number)
        party = await self._create(
            "party",
            {
                "name": known_values.name,
                "kind": "company" if is_company else "person",
                "email": known_values.email,
                "phone": self._phone(),
                "tax_id": f"EU{_between(10**8, 10**9 - 1)}{number:03d}" if is_company else None,
                "notes": self._notes(number) if number % 3 == 0 else None,
                "customer_since": self._day(-2000, -1),
            },
        )
        self._parties.append(known_values._replace(id=party))
        city, postcode, country = _choice(CITIES if number < LATIN_PARTIES else OTHER_CITIES)
        street = f"{_choice(STREETS)} {_between(1, 180)}"
        address = {"party": party, "street": street, "postcode": postcode, "city": city, "country": country}
        await self._create("address", address)

    async def _lead(self, number: int) -> None:
        contact_values, company = self._contact(number)
        form, company_name = _choice(LEAD_TITLES), _choice(COMPANIES)
        title = form.format(company=company or company_name)
        source = self._source(number)
        owner = "alice" if number % 3 else "bob"
        end_values = {"lost_reason": _choice(LOST_REASONS)} if number % 5 == 4 else {}
        lead = await self._create(
            "lead",
            {
                **contact_values,
                **end_values,
                "source": source,
                "title": title,
                "expected_revenue_minor": _between(5, 900) * 10_000 if number % 7 else None,
                "contact_phone": self._phone() if number % 2 else None,
                "owner": self._people[owner],
                "expected_close": self._day(1, 200) if number % 6 else None,
                "notes": self._notes(number) if number % 5 == 0 else None,
                "stage": ("new", "qualified", "proposed", "won", "lost")[number % 5],
            },
            creator_id=owner,
        )
        if number % 10 == 0:
            kind = _choice(("call", "mail", "meeting", "task"))
            await self._create("activity", {"lead": lead, "kind": kind, "subject": f"{kind} about {title}"[:200]})

    def _source(self, number: int) -> str | None:
        if number % 3:
            return _choice(SOURCES)
        return _item_at(SOURCES, number // 3) if number % 9 else None

    def _contact(self, number: int) -> tuple[dict[str, str], str]:
        """Return the contact of a lead, and the company that it is at, or nothing. Several leads share a contact, as
        in real data. Agents recognize a shared contact by equal tokens."""
        companies = self._companies_of(number)
        if number % 4:
            party = _choice(companies)
            contact_values = {"contact_name": party.contact, "contact_email": party.email, "party": party.id}
            return contact_values, party.name.rpartition(" ")[0]
        contact = self._person()
        if number % 16 == 0:
            return {"contact_name": contact, "contact_email": f"{_user(contact)}@mail.example"}, ""
        party = _item_at(companies, number * 3)
        email = f"{_user(contact)}@{party.email.rpartition('@')[2]}"
        return {"contact_name": contact, "contact_email": email, "party": party.id}, party.name.rpartition(" ")[0]

    async def _invoice(self, number: int, products: list[str]) -> None:
        party = self._party_of(number).id
        due_day = self._day(10, 60)
        # An invoice without a due date stays a draft. A draft that is due before today could not be posted.
        invoice = await self._create("invoice", {"party": party, "due": due_day if number % 4 else None})
        for _ in range(_between(1, 3)):
            product_index = _between(0, len(products) - 1)
            _, name, price = PRODUCTS[product_index]
            line = {
                "invoice": invoice,
                "product": products[product_index],
                "description": name,
                "quantity": _between(1, 12),
                "unit_price_minor": price,
            }
            await self._create("invoice_line", line)
        if number % 4:
            await self._run_action("invoice", invoice, "post")

    async def _ticket(self, number: int) -> None:
        party = self._party_of(number)
        await self._create(
            "ticket",
            {
                "subject": _choice(SUBJECTS),
                "party": party.id,
                "requester_name": party.contact,
                "requester_email": party.email,
                "priority": _choice(("low", "normal", "high", "urgent")),
                "description": self._notes(number) if number % 2 else None,
            },
        )
