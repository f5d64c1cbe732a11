"""Generates random requests for two worlds from what was seen before. Placeholders in a request mark the positions of
the tokens of each world."""

import json
import random
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from countersign.declare import Declared, Ref, Select
from countersign.declare.registry import Registry
from countersign.kernel import ids

PLAIN: Mapping[str, tuple[object, ...]] = {
    "number": (0, 1, 2, 5, 1000, 3000, 7777),
    "money": (0, 1, 2, 5, 1000, 3000, 7777),
    "date": ("2026-12-03", "2026-11-05", "2027-01-01", "2026-02-30"),
    "bool": (True, False),
}
OPERATORS = ("eq", "ne", "contains", "in", "gt", "gte", "lt", "lte", "is_null")
MODELS = ("lead", "party", "activity", "ticket", "invoice", "product")
BOOKS = ("invoice", "payment", "invoice_line", "product", "party")
"""The models of requests about accounting."""
ENGINE_MODELS = ("user", "session", "agent_token", "role", "grant", "setting", "token_domain", "pii_value")
HIDDEN_MODELS = ("dossier", "dossiers")
"""Names of a model that only world b has, and of one that no world has."""

GUESSES = {
    "PERSON": ("Ada Lovelace 3", "Grace 2", "Katherine the 2th", "Someone New"),
    "EMAIL": ("contact1@a.example", "1.someone.else@elsewhere.example", "new@new.example"),
    "TAXID": ("AT00000003", "FR00000000039", "XX30"),
    "SKU": ("SKU-1", "SKU-1X", "MORE-2", "SKU-0"),
}
NOBODYS = ("SKU-0", "SKU-2", "MINE-1", "MINE-2", "MINE-3")
"""Values of unique fields that no hidden record has."""

EVERY_GUESS = tuple(guess for several in GUESSES.values() for guess in several)
OTHERS = "⟦~"
_MARK = re.compile(r"⟦(~?)(\d+)⟧")


@dataclass(frozen=True)
class GeneratedRequest:
    """One request. In the body, ⟦7⟧ stands for the seventh known token of each world, and ⟦~7⟧ for that of the other
    world. A raw body is sent unchanged. `key` is the Idempotency-Key of a command."""

    path: str
    body: Mapping[str, object] | None = None
    accept: str = "*/*"
    method: str = ""
    raw: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    key: str = ""

    def body_text(self) -> str:
        """Return the body with its placeholders."""
        return json.dumps(self.body, ensure_ascii=False) if self.raw is None else self.raw.decode("latin-1")

    def content(self, tokens: Sequence[tuple[str, str]]) -> bytes:
        """Return the body for one world. `tokens` maps each placeholder to the world's own token and the token of the
        other world."""
        return _MARK.sub(lambda found: tokens[int(found[2])][bool(found[1])], self.body_text()).encode()


@dataclass
class GeneratorKnowledge:
    """The knowledge of the generator: ids by model (including hidden and missing ones), the ids that were seen, the
    fields of the caller, the labels of its tokens, and its plans."""

    ids: dict[str, list[str]]
    seen: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    fields: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    labels: list[str] = field(default_factory=list[str])
    plans: list[str] = field(default_factory=list[str])
    etags: dict[str, str] = field(default_factory=dict[str, str])


def made_ids() -> dict[str, list[str]]:
    """Return ids of records in both worlds, of records in world b only, and of no record."""
    ids: dict[str, list[str]] = {}
    for model in dict.fromkeys((*MODELS, *BOOKS, "comment")):
        ids[model] = [_id(model, number) for number in range(26)]
        ids[model] += [_id(model, f"more {number}") for number in range(5)] + ["0" * 24, "x"]
    ids["plan"] = ["0" * 24, "x"]
    return ids


def _id(model: str, key: object) -> str:
    with ids.seeded(f"{model}/{key}"):
        return ids.new_record_id()


class RequestSequence:
    """An endless sequence of requests."""

    def __init__(self, registry: Registry, seed: int, *, is_agent: bool, models: Sequence[str] = MODELS) -> None:
        """Create a generator. For an agent, it sends requests that hidden records may prevent, because they become
        plans. For a person, it does not send them: it is documented that the response reveals the obstacle (a refused
        deletion, a unique value that is taken, a guard that is not met)."""
        self._is_agent = is_agent
        self._chance = random.Random(seed)
        # Use a separate random generator, so that additions do not change the other requests of a seed.
        self._chance_of_files = random.Random(f"files {seed}")
        self._registry = registry
        self._models = models
        self.known = GeneratorKnowledge(made_ids())
        self._kinds: list[tuple[int, Callable[[Declared], GeneratedRequest]]] = [
            (22, self._list),
            (10, self._search),
            (8, self._get),
            (14, self._update),
            (10, self._create),
            (7 if is_agent else 0, self._delete),
            (9, self._action),
            (5, self._history),
            (5, self._count_by),
            (4, self._export),
            (3, self._import),
            (6, self._plans),
            (3, self._propose),
            (3, self._audit),
            (5, self._other),
            (4, self._crooked),
            (6, self._guess),
            (3, self._launder),
            (5, self._again),
            (4, self._right_guess),
            (10, self._repeat),
            (4, self._related),
            (4, self._series),
            (9, self._comment),
        ]
        self._asked: list[GeneratedRequest] = []

    def next(self) -> GeneratedRequest:
        """Return the next request."""
        weights = [weight for weight, _ in self._kinds]
        ((_, make),) = self._chance.choices(self._kinds, weights)
        asked = make(self._registry.models[self._chance.choice(self._models)])
        if not asked.key and asked.body is not None and self._chances(40):
            asked = replace(asked, key=str(uuid.UUID(int=self._chance.getrandbits(128))))
        self._asked.append(asked)
        return asked

    def pause_s(self) -> int:
        """Return the seconds between the last request and this one. Sometimes many requests come at once, or none for a
        while."""
        return self._chance.choice((1, 1, 20, 60))

    def _pick(self, *values: Any) -> Any:
        return self._chance.choice(values)

    def _chances(self, percent: int) -> bool:
        return self._chance.randrange(100) < percent

    def _record(self, model: str) -> str:
        seen = self.known.seen.get(model)
        return self._chance.choice(seen if seen and self._chances(50) else self.known.ids.get(model) or ["x"])

    def _token(self, label: str | None = None) -> str:
        fitting = [n for n, known_label in enumerate(self.known.labels) if label is None or known_label == label]
        if not fitting or self._chances(10):
            return self._pick("EMAIL_123", "PERSON_99", "email_123", "<EMAIL>", "EMAIL-9", "[EMAIL_55]", "LITERAL_4")
        return f"⟦{'~' if self._chances(6) else ''}{self._chance.choice(fitting)}⟧"

    def _field(self, model: Declared) -> str:
        if self._chances(6):
            return self._pick("nothing", "id", "revision", "party.name", "")
        seen = self.known.fields.get(model.name)
        if seen and self._chances(70):
            return self._chance.choice(seen)
        return self._chance.choice(list(model.fields))

    def _value(self, model: Declared, name: str) -> object:
        field = model.fields.get(name)
        if self._chances(7):
            return self._pick(None, True, 1.5, "", [], {}, -1, "x" * 1100)
        if field is not None and field.unique and not self._is_agent:
            return self._pick(*NOBODYS)
        if isinstance(field, Select):
            return self._chance.choice(field.options)
        if isinstance(field, Ref):
            return self._record(field.target)
        if field is not None and field.kind in PLAIN:
            return self._chance.choice(PLAIN[field.kind])
        return self._text(None if field is None else field.personal)

    def _text(self, label: str | None) -> str:
        if label is not None and self._chances(60):
            whole = self._token(label if self._chances(80) else None)
            return whole if self._chances(70) else f"Write to {whole}, or {self._token()}"
        if self._chances(8):
            return f"about {self._token()}"
        return self._pick(*EVERY_GUESS, "Order 2", "Order", "It broke 1", "Visible 2", "https://3.example", "EMAIL_12")

    def _condition(self, model: Declared) -> dict[str, object]:
        name = self._field(model)
        operator = self._chance.choice(OPERATORS)
        value = self._value(model, name)
        if operator == "in":
            value = [value, self._value(model, name)]
        if operator == "is_null":
            value = self._pick(True, False)
        return {"field": name, "op": operator, "value": value}

    def _query(self, model: Declared, *, is_plain: bool = False) -> dict[str, object]:
        body: dict[str, object] = {}
        if self._chances(55):
            body["filter"] = [self._condition(model) for _ in range(self._pick(1, 1, 2))]
        if self._chances(55):
            keys = [{"field": self._field(model), "dir": self._pick("asc", "desc")} for _ in range(self._pick(1, 1, 2))]
            body["order"] = keys
        if not is_plain and self._chances(50):
            body |= {"limit": self._pick(1, 2, 5, 50), "offset": self._pick(0, 0, 1, 3, 1000)}
        return body

    def _list(self, model: Declared) -> GeneratedRequest:
        return GeneratedRequest(f"/api/{model.name}/list", self._query(model))

    def _search(self, model: Declared) -> GeneratedRequest:
        body = self._query(model)
        if self._chance_of_files.randrange(100) < 40:
            body |= {"sums": [self._field(model)], "expand": [self._field(model)]}
        return GeneratedRequest(f"/api/{model.name}/search", body)

    def _related(self, model: Declared) -> GeneratedRequest:
        return GeneratedRequest(
            f"/api/{model.name}/related", {"id": self._record(model.name), "limit": self._pick(0, 1, 5)}
        )

    def _comment(self, model: Declared) -> GeneratedRequest:
        """Return a request about comments, also on records that the caller does not see."""
        subject = self._pick(model.name, model.name, *HIDDEN_MODELS)
        record_id = self._record("comment")
        condition = {"field": "record", "op": "eq", "value": self._record(model.name)}
        text = self._pick("Call back", "Ask @carol and @bob", "@alice @root", "@nothing", self._text("NOTES"))
        name, body = self._pick(
            ("list", {"filter": [condition]}),
            ("search", {"limit": 3, "order": [{"field": "written_at", "dir": "desc"}]}),
            ("get", {"id": record_id}),
            ("create", {"model": subject, "record": self._record(model.name), "text": text}),
            ("create", {"model": subject, "record": self._record(model.name), "text": text}),
            ("update", {"id": record_id, "text": text}),
            ("delete", {"id": record_id}),
        )
        return GeneratedRequest(f"/api/comment/{name}", body)

    def _series(self, model: Declared) -> GeneratedRequest:
        body: dict[str, object] = {
            "fn": self._pick("count", "sum", "avg", "median"),
            "date": self._field(model),
            "step": self._pick("day", "week", "month", "quarter", "year", "hour"),
            "from": self._pick("2026-10-01", "2026-11-05", "2020-01-01"),
            "to": self._pick("2026-12-31", "2026-11-05", "2027-06-30"),
        }
        days = [name for name, declared_field in model.fields.items() if declared_field.kind == "date"]
        if days and self._chances(70):
            body["date"] = self._pick(*days)
        if body["fn"] != "count":
            body["field"] = self._field(model)
        if self._chances(40):
            body["by"] = self._field(model)
        return GeneratedRequest(f"/api/{model.name}/series", body)

    def _get(self, model: Declared) -> GeneratedRequest:
        return GeneratedRequest(f"/api/{model.name}/get", {"id": self._record(model.name)})

    def _history(self, model: Declared) -> GeneratedRequest:
        return GeneratedRequest(f"/api/{model.name}/history", {"id": self._record(model.name)})

    def _given(self, model: Declared, most: int) -> dict[str, object]:
        names = {self._field(model) for _ in range(self._chance.randint(1, most))}
        return {name: self._value(model, name) for name in sorted(names)}

    def _create(self, model: Declared) -> GeneratedRequest:
        body = self._given(model, 3)
        for name, declared_field in model.fields.items():
            if declared_field.required and not declared_field.readonly and self._chances(90):
                body.setdefault(name, self._value(model, name))
        return GeneratedRequest(f"/api/{model.name}/create", body)

    def _update(self, model: Declared) -> GeneratedRequest:
        body = {**self._given(model, 2), "id": self._record(model.name)}
        if self._chances(25):
            body["revision"] = self._pick(1, 2, 3)
        return GeneratedRequest(f"/api/{model.name}/update", body)

    def _guess(self, model: Declared) -> GeneratedRequest:
        """Return a request that writes a value of another record in clear into a field in which the response could
        confirm it."""
        if self._chances(50):
            # In a unique field, a right guess must not be a value that another record has.
            model = self._registry.models[self._pick("party", "product")]
            fields = ["tax_id" if model.name == "party" else "sku"]
        else:
            fields = [name for name in self.known.fields.get(model.name, ()) if model.fields[name].personal]
        name = self._pick(*fields, "notes")
        label = model.fields[name].personal if name in model.fields else None
        guesses = GUESSES.get(label or name.upper(), EVERY_GUESS)
        if name in model.fields and model.fields[name].unique and not self._is_agent:
            guesses = NOBODYS
        body = {"id": self._record(model.name), name: self._chance.choice(guesses)}
        return GeneratedRequest(f"/api/{model.name}/update", body)

    def _right_guess(self, _: Declared) -> GeneratedRequest:
        """Return a request with a value that a record has in only one of the worlds, and repeat it."""
        number = self._chance.randrange(14)
        name, prefix = self._pick(("lead", "contact"), ("ticket", "requester"))
        mails = (f"contact{number % 7}@a.example", f"{number % 7}.someone.else@elsewhere.example")
        names = (f"Grace {number % 6}", f"Katherine the {number % 6}th")
        value = self._pick({f"{prefix}_email": self._pick(*mails)}, {f"{prefix}_name": self._pick(*names)})
        return GeneratedRequest(f"/api/{name}/update", {"id": self.known.ids[name][number], **value})

    def _launder(self, model: Declared) -> GeneratedRequest:
        """Return a request that writes a token into a field that the caller reads in clear."""
        names = [name for name in self.known.fields.get(model.name, ()) if not model.fields[name].personal]
        texts = [name for name in names if model.fields[name].kind == "text"]
        return GeneratedRequest(
            f"/api/{model.name}/update",
            {"id": self._record(model.name), self._pick(*texts, "title"): self._pick(self._token(), "LITERAL_4")},
        )

    def _again(self, model: Declared) -> GeneratedRequest:
        """Repeat an earlier request, or delete a record that others change. For the caller, nothing has changed."""
        if self._is_agent and self._chances(50):
            name = self._pick("party", "lead")
            record_id = self.known.ids[name][self._pick(0, 1, 2, 3)]
            return GeneratedRequest(f"/api/{name}/delete", {"id": record_id, **self._cascade()})
        requests = [request for request in self._asked[-60:] if request.path.endswith(("/delete", "/update"))]
        return self._chance.choice(requests) if requests else self._get(model)

    def _repeat(self, model: Declared) -> GeneratedRequest:
        """Repeat a command with its key, or send another command with this key."""
        requests = [request for request in self._asked[-80:] if request.key and request.path.count("/") == 3]
        if not requests:
            return self._create(model)
        asked = self._chance.choice(requests)
        return replace(self._chance.choice(requests), key=asked.key) if self._chances(10) else asked

    def _delete(self, model: Declared) -> GeneratedRequest:
        return GeneratedRequest(f"/api/{model.name}/delete", {"id": self._record(model.name), **self._cascade()})

    def _cascade(self) -> Mapping[str, object]:
        return self._pick({}, {"cascade": True}, {"cascade": True}, {"cascade": False})

    def _action(self, model: Declared) -> GeneratedRequest:
        moves = [] if model.workflow is None else [name for name in model.workflow.moves if self._may_try(model, name)]
        body = {"id": self._record(model.name), **(self._given(model, 1) if self._chances(30) else {})}
        return GeneratedRequest(f"/api/{model.name}/{self._pick(*moves, 'fly')}", body)

    def _may_try(self, model: Declared, name: str) -> bool:
        """Return whether the caller may send this action. For a person, the response to an action reveals whether its
        guards are met, including guards on fields that the person does not see. A guard on a ref to a hidden record
        reveals that the ref is not empty."""
        guards = () if model.workflow is None else model.workflow.moves[name].guards
        seen = self.known.fields.get(model.name, ())
        return self._is_agent or all(
            guard.field in seen and not (isinstance(model.fields[guard.field], Ref) and guard.value is True)
            for guard in guards
        )

    def _count_by(self, model: Declared) -> GeneratedRequest:
        return GeneratedRequest(f"/api/{model.name}/count_by", {"field": self._field(model)})

    def _export(self, model: Declared) -> GeneratedRequest:
        accept = self._pick("*/*", "text/csv", "application/x-ndjson")
        body, of_files = self._query(model, is_plain=True), self._chance_of_files
        if of_files.random() < 0.5:
            body["form"] = of_files.choice(("shown", "shown", "raw"))
        if of_files.random() < 0.2:
            body["fields"] = of_files.sample(list(model.fields), 2)
        return GeneratedRequest(f"/api/{model.name}/export", body, accept)

    def _import(self, model: Declared) -> GeneratedRequest:
        name = self._field(model)
        rows = "\n".join(f'"{self._cell(model, name)}"' for _ in range(2))
        is_trial, of_files = self._pick(True, False), self._chance_of_files
        field = model.fields.get(name)
        head = field.label if field is not None and of_files.random() < 0.5 else name
        body: dict[str, object] = {"csv": f"{head}\n{rows}\n", "dry_run": is_trial}
        if of_files.random() < 0.1:
            body["restore"] = True
        return GeneratedRequest(f"/api/{model.name}/import", body)

    def _cell(self, model: Declared, name: str) -> object:
        """Return a value. For a reference, it is sometimes the name of a record, which may be hidden from the
        caller."""
        value = self._value(model, name)
        if isinstance(model.fields.get(name), Ref) and self._chance_of_files.random() < 0.6:
            return self._chance_of_files.choice(
                (*EVERY_GUESS, "Order 2", "Not hers", "bob", "carol", "Visible 2", "2026-000001")
            )
        return value

    def _plans(self, _: Declared) -> GeneratedRequest:
        name = self._pick("list", "search", "get", "get", "withdraw", "reject", "watch")
        if name in ("list", "search"):
            order = [{"field": "proposed_at", "dir": "desc"}]
            return GeneratedRequest(f"/api/plan/{name}", {"order": order, "limit": 20})
        if name == "watch":
            return GeneratedRequest("/api/plan/watch", {"since": 0, "wait_s": 0})
        plan_id = self._chance.choice([*self.known.plans[-8:], *self.known.ids["plan"]])
        return GeneratedRequest(f"/api/plan/{name}", {"id": plan_id, **({"reason": "no"} if name == "reject" else {})})

    def _propose(self, model: Declared) -> GeneratedRequest:
        steps: list[object] = []
        for request in (self._update(model), self._delete(model), self._create(model))[: self._pick(1, 2, 3)]:
            name = request.path.removeprefix("/api/").replace("/", ".")
            steps.append({"command": name, "input": request.body})
        why = self._pick("because", f"ask {self._token()}")
        return GeneratedRequest("/api/plan/propose", {"steps": steps, "why": why})

    def _audit(self, _: Declared) -> GeneratedRequest:
        order = [{"field": self._pick("id", "at", "command")}]
        return GeneratedRequest(f"/api/audit_entry/{self._pick('list', 'search')}", {"order": order})

    def _other(self, model: Declared) -> GeneratedRequest:
        document = self._pick("/api/commands", "/api/meta", "/api/openapi.json")
        known = {"If-None-Match": self._pick('"0"', "*", *self.known.etags.values())} if self._chances(50) else {}
        return self._pick(
            GeneratedRequest(document, headers=known),
            GeneratedRequest(document),
            GeneratedRequest("/api/auth/agent-token", {"scopes": [f"{model.name}.*"], "label": self._text("EMAIL")}),
            GeneratedRequest(
                f"/api/approve/{self._chance.choice([*self.known.plans[-3:], *self.known.ids['plan']])}", {}
            ),
            GeneratedRequest(f"/api/{self._pick(*ENGINE_MODELS)}/list", {}),
            GeneratedRequest(f"/api/{self._pick(*HIDDEN_MODELS)}/{self._pick('list', 'get', 'create', 'fly')}", {}),
            GeneratedRequest(f"/api/{self._pick(*HIDDEN_MODELS)}/count_by", {"field": "party"}),
        )

    def _crooked(self, model: Declared) -> GeneratedRequest:
        """Return a request that is refused before it reaches a command, or that contains unknown names."""
        path = f"/api/{self._pick(model.name, *HIDDEN_MODELS)}/{self._pick('list', 'get', 'fly', 'delete')}"
        raw = self._pick(b"", b"[]", b"{", b'{"id":"x","id":"y"}', b'{"__proto__":{}}', b"\xff", b'{"id":"\\u0000"}')
        return self._pick(
            GeneratedRequest(path, raw=raw),
            GeneratedRequest(path, {"id": self._record(model.name)}, headers={"Content-Type": "text/plain"}),
            GeneratedRequest(path, {"id": self._record(model.name)}, headers={"Authorization": "Bearer nobody's"}),
            GeneratedRequest(path, method=self._pick("GET", "PUT", "DELETE")),
            GeneratedRequest(f"{path}/more", {"id": self._record(model.name)}),
            GeneratedRequest(f"/api/{model.name}/list", {"where": [], "filter": [self._condition(model)]}),
        )
