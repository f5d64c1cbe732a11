"""The worst requests within the documented limits, as large, deep, long or many as allowed, for both services.

The same seed makes the same requests. Refused requests count as much as accepted ones, because a refusal costs time
too.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from urllib.parse import quote, urlencode

RECORDS_BYTES, STORE_BYTES = 8 << 20, 1 << 20
"""The largest bodies of each service, less the space that surrounds a text."""
ROOM = 1024
LEAD = "(a lead)"
"""Stands in a body for the id of a lead, which is known when the server runs."""
VARIANTS = 3
"""The maximum count of requests of each kind, which are sent again and again."""


@dataclass(frozen=True, slots=True)
class WorstCaseRequest:
    """One request. `caller` selects the token; empty: no token."""

    kind: str
    service: str
    method: str
    path: str
    caller: str = ""
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


Maker = Callable[[random.Random], WorstCaseRequest]
_makers: list[tuple[str, str, Maker]] = []


def store(make: Maker) -> Maker:
    """Register a kind of request to the store."""
    _makers.append(("store", make.__name__, make))
    return make


def records(make: Maker) -> Maker:
    """Register a kind of request to the records service."""
    _makers.append(("records", make.__name__, make))
    return make


@cache
def worst_case_requests(seed: int, variants: int = VARIANTS) -> tuple[WorstCaseRequest, ...]:
    """Return a few requests of every kind."""
    rng = random.Random(seed)
    return tuple(make(rng) for _ in range(variants) for _, _, make in _makers)


def endless(seed: int, variants: int = VARIANTS) -> Iterator[WorstCaseRequest]:
    """Yield all kinds in rounds without end, each round in an order of its own."""
    all_of_them = worst_case_requests(seed, variants)
    for turn in count():
        shuffled = list(all_of_them)
        random.Random(seed + turn).shuffle(shuffled)
        yield from shuffled


def words(rng: random.Random, length: int) -> str:
    """Return words of a question or a search."""
    known_words = (
        "games",
        "and",
        "or",
        "not",
        "free",
        "tools",
        "for",
        "linux",
        "under",
        "5",
        "mb",
        "by",
        "newest",
        "ümlaut",
    )
    text = ""
    while len(text) < length:
        text += rng.choice(known_words) + " "
    return text[:length].strip()


def combining_marks(length: int) -> str:
    """Combining marks, which Unicode normalisation sorts."""
    return ("a" + "\u0300\u0316" * (length // 2))[:length]


def tokens(length: int) -> str:
    """Return texts that are almost placeholder tokens."""
    return "EMAIL_1 emaiI_2 EMAIL-3 " * (length // 24)


def _post(kind: str, service: str, path: str, caller: str, value: object) -> WorstCaseRequest:
    return WorstCaseRequest(kind, service, "POST", path, caller, json.dumps(value, ensure_ascii=False).encode())


def _get(kind: str, path: str, caller: str = "", **headers: str) -> WorstCaseRequest:
    shown_headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return WorstCaseRequest(kind, "store", "GET", path, caller, headers=shown_headers)


@store
def search(rng: random.Random) -> WorstCaseRequest:
    text = rng.choice((words(rng, 200), combining_marks(200), "%_" * 100, '"' * 200))
    query = urlencode({"q": text, "limit": 100, "sort": "relevance"})
    return _get("search", f"/api/v1/products?{query}")


@store
def cursor(rng: random.Random) -> WorstCaseRequest:
    letters = "".join(rng.choices("AZaz09-_", k=4096))
    return _get("cursor", f"/api/v1/products?cursor={letters}")


@store
def query_string(rng: random.Random) -> WorstCaseRequest:
    pairs = "&".join(f"p{number}={rng.random()}" for number in range(1500))
    return _get("query_string", f"/api/v1/products?{pairs}")


@store
def path(rng: random.Random) -> WorstCaseRequest:
    return _get("path", "/api/v1/products/" + quote(combining_marks(rng.randrange(1000, 3000))))


@store
def headers(rng: random.Random) -> WorstCaseRequest:
    extra_headers = {f"X_{number}": "v" * 200 for number in range(90)}
    return _get(
        "headers", "/api/v1/products?limit=100", **extra_headers, Cookie="; ".join(["c=v"] * rng.randrange(1000, 3000))
    )


@store
def conditional(rng: random.Random) -> WorstCaseRequest:
    tags = ", ".join(f'"{rng.randrange(10**9)}"' for _ in range(1500))
    return _get(
        "conditional", "/api/v1/products?limit=100", If_None_Match=tags, Accept="text/html;q=0.1, " * 300 + "*/*"
    )


@store
def documents(rng: random.Random) -> WorstCaseRequest:
    return _get("documents", rng.choice(("/openapi.json", "/wiki.json", "/llms.txt", "/api/v1/catalog")))


@store
def question(rng: random.Random) -> WorstCaseRequest:
    text = rng.choice(("games and " * 200, "not free or " * 160, words(rng, 2000), combining_marks(2000), "a " * 1000))
    return _post("question", "store", "/api/v1/ask", "", {"query": text[:2000].strip()})


@store
def batch(rng: random.Random) -> WorstCaseRequest:
    query = urlencode({"q": words(rng, 200), "limit": 100})
    calls = [{"method": "GET", "path": f"/products?{query}&sort=title"} for _ in range(50)]
    return _post("batch", "store", "/api/v1/batch", "", {"operations": calls})


@store
def batch_of_questions(rng: random.Random) -> WorstCaseRequest:
    body = {"query": words(rng, 2000)}
    calls = [{"method": "POST", "path": "/ask", "body": body} for _ in range(50)]
    return _post("batch_of_questions", "store", "/api/v1/batch", "", {"operations": calls})


@store
def redeem(rng: random.Random) -> WorstCaseRequest:
    code = "".join(rng.choices("ABCDEFGHJKMNPQRSTVWXYZ23456789-", k=128))
    return _post("redeem", "store", "/api/v1/redeem", "publisher", {"code": code})


@store
def token(rng: random.Random) -> WorstCaseRequest:
    secret = "s" * rng.randrange(100, 200)
    form = urlencode({"grant_type": "client_credentials", "client_id": "demo-publisher", "client_secret": secret})
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return WorstCaseRequest("token", "store", "POST", "/api/v1/auth/token", "", form.encode(), kind)


@store
def product(rng: random.Random) -> WorstCaseRequest:
    text = rng.choice((combining_marks(20_000), words(rng, 20_000), "\U0001f600" * 20_000))
    value = {
        "title": combining_marks(200),
        "description": text,
        "kind": "game",
        "slug": "x" * 40 + str(rng.randrange(10**9)),
        "tags": ["t" * 40],
    }
    return _post("product", "store", "/api/v1/products", "publisher", value)


@store
def deep_json(rng: random.Random) -> WorstCaseRequest:
    depth = (STORE_BYTES - ROOM) // 2
    opener = rng.choice((b"[", b'{"a":'))
    body = b'{"type":"x","payload":{"a":' + opener * (depth // len(opener))
    return WorstCaseRequest("deep_json", "store", "POST", "/api/v1/jobs", "publisher", body[: STORE_BYTES - ROOM])


@store
def wide_json(rng: random.Random) -> WorstCaseRequest:
    values = "1," * ((STORE_BYTES - ROOM) // 2)
    body = f'{{"type":"x{rng.randrange(9)}","payload":{{"a":[{values}1]}}}}'
    return WorstCaseRequest("wide_json", "store", "POST", "/api/v1/jobs", "publisher", body.encode())


@store
def tools(rng: random.Random) -> WorstCaseRequest:
    call = {"name": "ask", "arguments": {"query": words(rng, 2000)}}
    calls = [{"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call} for number in range(50)]
    return _mcp("tools", "store", "", calls)


@store
def wide_tools(rng: random.Random) -> WorstCaseRequest:
    body = b"[" + b"1," * ((STORE_BYTES - ROOM - rng.randrange(99)) // 2) + b"1]"
    return _mcp_bytes("wide_tools", "store", "", body)


def _mcp(kind: str, service: str, caller: str, value: object) -> WorstCaseRequest:
    return _mcp_bytes(kind, service, caller, json.dumps(value).encode())


def _mcp_bytes(kind: str, service: str, caller: str, body: bytes) -> WorstCaseRequest:
    accept = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-03-26"}
    return WorstCaseRequest(kind, service, "POST", "/mcp", caller, body, accept)


@records
def conditions(rng: random.Random) -> WorstCaseRequest:
    values = [words(rng, 20) for _ in range(1000)]
    filters = [{"field": "title", "op": "in", "value": values} for _ in range(50)]
    value = {"filter": filters, "order": [{"field": "title", "dir": "desc"}], "limit": 5000}
    return _post("conditions", "records", "/api/lead/list", rng.choice(("alice", "agent")), value)


@records
def contains(rng: random.Random) -> WorstCaseRequest:
    text = rng.choice((words(rng, 2000), combining_marks(2000), "%_" * 1000))
    filters = [{"field": "title", "op": "contains", "value": text} for _ in range(50)]
    return _post("contains", "records", "/api/lead/search", rng.choice(("alice", "agent")), {"filter": filters})


@records
def whole_list(rng: random.Random) -> WorstCaseRequest:
    value = {"limit": 5000, "offset": rng.randrange(2**53 - 1) if rng.random() < 0.5 else 0}
    return _post("whole_list", "records", "/api/lead/list", rng.choice(("alice", "agent")), value)


@records
def token_like_text(rng: random.Random) -> WorstCaseRequest:
    text = tokens(960_000)
    return _post(
        "token_like_text",
        "records",
        "/api/lead/update",
        rng.choice(("alice", "agent")),
        {"id": LEAD, "notes": text},
    )


@records
def text_with_marks(rng: random.Random) -> WorstCaseRequest:
    value = {"title": combining_marks(500), "notes": combining_marks(rng.randrange(100_000, 900_000))}
    return _post("marked_text", "records", "/api/lead/create", rng.choice(("alice", "agent")), value)


@records
def table(rng: random.Random) -> WorstCaseRequest:
    rows = "title,notes\n" + "".join(f"{words(rng, 20)},{tokens(100)}\n" for _ in range(rng.choice((499, 999, 4_999))))
    return _post("table", "records", "/api/lead/import", "alice", {"csv": rows, "dry_run": True})


@records
def empty_cells(rng: random.Random) -> WorstCaseRequest:
    text = rng.choice(("," * (4 << 20), "title\n" * (1 << 20), "title\n" + ",\n" * (2 << 20)))
    return _post("empty_cells", "records", "/api/lead/import", "alice", {"csv": text, "dry_run": True})


@records
def export(rng: random.Random) -> WorstCaseRequest:
    return _post("export", "records", "/api/lead/export", rng.choice(("alice", "agent")), {})


@records
def user_name(rng: random.Random) -> WorstCaseRequest:
    name = rng.choice(
        (combining_marks(RECORDS_BYTES // 3), "u" * (RECORDS_BYTES - ROOM), "\u00e9" * (RECORDS_BYTES // 3))
    )
    return _post("user_name", "records", "/api/auth/login", "", {"username": name, "password": "p" * 200})


@records
def password(rng: random.Random) -> WorstCaseRequest:
    value = {"username": f"u{rng.randrange(10**9)}", "password": combining_marks(RECORDS_BYTES // 3)}
    return _post("password", "records", "/api/auth/login", "", value)


@records
def wide_body(rng: random.Random) -> WorstCaseRequest:
    piece = rng.choice((b"[],", b"1,", b'"",', b'{"a":1},'))
    body = b'{"filter":[' + piece * ((RECORDS_BYTES - ROOM) // len(piece)) + b"1]}"
    return WorstCaseRequest("wide_body", "records", "POST", "/api/lead/list", "alice", body)


@records
def many_values(rng: random.Random) -> WorstCaseRequest:
    piece = rng.choice(("[]", "1", '""', '{"a":1}'))
    body = '{"filter":[' + ",".join([piece] * 24_000) + "]}"
    return WorstCaseRequest("many_values", "records", "POST", "/api/lead/list", "alice", body.encode())


@records
def deep_body(rng: random.Random) -> WorstCaseRequest:
    opener = rng.choice((b"[", b'{"a":'))
    body = b'{"filter":' + opener * ((RECORDS_BYTES - ROOM) // len(opener))
    return WorstCaseRequest("deep_body", "records", "POST", "/api/lead/list", "alice", body)


@records
def text_of_escapes(rng: random.Random) -> WorstCaseRequest:
    piece = rng.choice((b"\\u00e9", b"\\\\", b":,", b'\\"'))
    body = b'{"title":"' + piece * ((RECORDS_BYTES - ROOM) // len(piece)) + b'"}'
    return WorstCaseRequest("escaped_text", "records", "POST", "/api/lead/create", "alice", body)


@records
def repeated_names(rng: random.Random) -> WorstCaseRequest:
    members = ",".join(f'"title{number}":":"' for number in range(20_000 + rng.randrange(99)))
    return WorstCaseRequest("repeated_names", "records", "POST", "/api/lead/create", "alice", f"{{{members}}}".encode())


@records
def plan(rng: random.Random) -> WorstCaseRequest:
    steps = [{"command": "lead.create", "input": {"title": words(rng, 100), "notes": words(rng, 9_000)}}] * 20
    return _post("plan", "records", "/api/plan/propose", "agent", {"steps": steps, "why": words(rng, 900)})


@records
def tool_calls(rng: random.Random) -> WorstCaseRequest:
    call = {"name": "lead__list", "arguments": {"limit": rng.randrange(50, 200)}}
    calls = [{"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call} for number in range(50)]
    return _mcp("tool_calls", "records", rng.choice(("alice", "agent")), calls)


@records
def wide_tool_calls(rng: random.Random) -> WorstCaseRequest:
    body = b"[" + b"1," * ((RECORDS_BYTES - ROOM - rng.randrange(99)) // 2) + b"1]"
    return _mcp_bytes("wide_tool_calls", "records", "agent", body)


@records
def meta(rng: random.Random) -> WorstCaseRequest:
    path = rng.choice(("/api/meta", "/api/commands", "/api/openapi.json"))
    return WorstCaseRequest("meta", "records", "GET", path, rng.choice(("alice", "agent")))
