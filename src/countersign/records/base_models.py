"""The models of the engine: users, roles, grants, sessions, agent tokens, settings, plans and audit entries."""

from collections.abc import Mapping

from countersign.declare import (
    ADMINISTRATOR,
    CALLER,
    Bool,
    LongText,
    Model,
    Module,
    Moment,
    Number,
    Option,
    Ref,
    Select,
    Structure,
    Text,
)
from countersign.declare import Setting as DeclaredSetting
from countersign.declare.condition import AGENT

RULING = frozenset({"user", "role", "user_role", "grant", "session", "agent_token", "setting"})
"""The models that define the rights of callers. Writing one of their records changes the rights of callers."""


class User(Model, label_de="Benutzer", icon="user", shown_as="username", subtitle_fields=("name",)):
    """A person who signs in."""

    username = Text(required=True, unique=True, max_length=100)
    name = Text(personal="PERSON", help="What others read")
    email = Text(personal="EMAIL", format="email")
    language = Select(
        Option("en", "English", "Englisch"), Option("de", "German", "Deutsch"), help="The language of e-mails"
    )
    letters = Select(
        Option("digest", de="Übersicht"),
        Option("none", de="Keine"),
        help="E-mails about plans that wait for the person, and mentions; by default a digest",
    )
    external_id = Text(
        max_length=200, restricted=(ADMINISTRATOR,), help="Of the person in a connected database, for its policies"
    )
    tenant = Text(
        max_length=200, restricted=(ADMINISTRATOR,), help="Of the person in a connected database, for its policies"
    )
    is_active = Bool(
        required=True, default=True, help="If it is switched off, all sessions and agents of the person end at once"
    )
    last_seen_at = Moment(readonly=True, help="When the person last called the service, to about a minute")


class RoleRecord(Model, name="role", label_de="Rolle", plural_de="Rollen", icon="shield-check"):
    """A role. Its members have the rights of all its grants."""

    title = Text(
        required=True, unique=True, max_length=100, help="The name by which modules and grants refer to the role"
    )
    description = Text()
    rights = Text(help="Rights that do not concern models, comma separated: base.unmask")


class UserRole(
    Model,
    label="Role of a user",
    plural="Roles of users",
    label_de="Rolle eines Benutzers",
    plural_de="Rollen von Benutzern",
    icon="users",
):
    """The membership of a user in a role."""

    user = Ref("user", required=True, on_delete="cascade")
    role = Ref("role", required=True, on_delete="cascade")


class GrantRecord(Model, name="grant", label_de="Berechtigung", plural_de="Berechtigungen", icon="key-round"):
    """The rights of a role on one model. Lists are comma separated; * means all."""

    role = Ref("role", required=True, on_delete="cascade")
    model = Text(required=True, max_length=100, index=True)
    commands = Text(required=True)
    clear = LongText(help="Fields read in clear")
    masked = LongText(help="Personal fields seen as placeholder tokens")
    write = LongText(help="Fields that the role may set")
    rows = LongText(help='Conditions on the records that the role may use: [{"field": …, "op": …, "value": …}]')


class Session(Model, label_de="Sitzung", plural_de="Sitzungen", icon="monitor", commands=("get", "list", "search")):
    """A session of a person who signed in."""

    user = Ref("user", required=True, on_delete="cascade", readonly=True)
    started_at = Moment(readonly=True)
    expires_at = Moment(readonly=True)
    ended_at = Moment(readonly=True)


class AgentToken(
    Model,
    label_de="Agenten-Token",
    plural_de="Agenten-Token",
    icon="bot",
    group="automation",
    commands=("get", "list", "search"),
):
    """A token with which an agent acts for a person, limited to its scopes."""

    label = Text(required=True, readonly=True, former_name="title")
    user = Ref("user", required=True, on_delete="cascade", readonly=True)
    scopes = LongText(readonly=True)
    unmask = LongText(readonly=True, help="Fields that the agent may read in clear")
    issued_at = Moment(readonly=True)
    expires_at = Moment(readonly=True)
    ended_at = Moment(readonly=True)
    last_used_at = Moment(readonly=True)
    calls_24h = Structure(readonly=True, help="The agent's calls of the last 24 hours")
    refused_24h = Structure(readonly=True, help="The agent's refused calls of the last 24 hours")
    proposals_open = Structure(readonly=True, help="The agent's plans that wait for a decision")


class Setting(Model, label_de="Einstellung", plural_de="Einstellungen", icon="settings"):
    """A setting of the engine, such as who must approve a command."""

    title = Text(required=True, unique=True, label="Name", max_length=200)
    value = LongText(required=True, help="JSON")


class Plan(
    Model,
    label_de="Vorschlag",
    plural_de="Vorschläge",
    icon="inbox",
    group="automation",
    shown_as="command",
    commands=("get", "list", "search"),
):
    """A proposed command with its changes and its outcome."""

    state = Select(
        Option("pending", en="Waiting", de="Wartet", tone="warn"),
        Option("executed", en="Done", de="Ausgeführt", tone="good"),
        Option("failed", de="Fehlgeschlagen", tone="bad"),
        Option("rejected", de="Abgelehnt", tone="bad"),
        Option("expired", de="Abgelaufen"),
        Option("withdrawn", en="Taken back", de="Zurückgenommen"),
        Option("stale", en="Out of date", de="Veraltet"),
        readonly=True,
        index=True,
    )
    command = Text(readonly=True, index=True)
    target = Structure(readonly=True, help="The record of the command")
    input = Structure(readonly=True, help="The command's input, as you may see it")
    diff = Structure(readonly=True, help="The values of every changed field before and after, as you may see them")
    effects = Structure(readonly=True, help="What else happens")
    digest = Text(readonly=True, help="Send it with the approval, so that you approve what you saw")
    why = LongText(readonly=True, help="The proposer's reason")
    person = Ref("user", readonly=True, on_delete="clear", help="The person for whom the agent proposed it")
    agent = Text(readonly=True, help="The label of the proposing agent")
    agent_token = Ref("agent_token", readonly=True, on_delete="clear")
    proposed_by = Structure(readonly=True)
    proposed_at = Moment(readonly=True, index=True)
    expires_at = Moment(readonly=True, index=True)
    needs = Number(readonly=True, help="How many people must approve")
    approvals = Structure(readonly=True)
    decided_by = Ref("user", readonly=True, on_delete="clear")
    decided_at = Moment(readonly=True)
    reason = LongText(readonly=True)
    result = Structure(readonly=True)
    risk = Structure(readonly=True, help="high, medium or low, as far as you see the plan")
    risk_reasons = Structure(readonly=True, help="Keys of the reasons for the risk")
    title = Structure(readonly=True, help="The plan as a sentence")
    record_name = Structure(readonly=True, help="The name of its record, as you may see it")
    record_url = Structure(readonly=True, help="The page of its record, if you see the record")
    reversible = Structure(readonly=True, help="Whether another command can undo it")
    affected = Structure(readonly=True, help="The records that it changes, as far as you see them; 50 at most")
    group_key = Structure(readonly=True, help="Equal for plans that do the same to different records")
    needs_left = Structure(readonly=True, help="How many people still have to approve")
    error = Text(readonly=True, help="Why it was not executed; `stale` while it waits if its records have changed")


PLAN = Plan.declared


class AuditEntry(
    Model,
    label_de="Protokolleintrag",
    plural_de="Protokoll",
    icon="history",
    group="automation",
    shown_as="command",
    commands=("get", "list", "search", "export"),
):
    """One executed command: the author, the record, and the values before and after. Entries are never changed or
    deleted."""

    at = Moment(readonly=True, index=True)
    lane = Number(readonly=True)
    number = Number(readonly=True, help="Position in its lane")
    user_id = Text(readonly=True, index=True, help="The person who acted, or for whom an agent acted")
    agent_token = Text(readonly=True)
    agent = Text(readonly=True, help="The label of the agent that acted")
    command = Text(readonly=True)
    model = Text(readonly=True)
    record_id = Text(readonly=True, index=True)
    fields = LongText(readonly=True, help="Names of the changed fields you may see")
    changes = Structure(readonly=True, help="The values of these fields before and after, as you may see them")
    plan_id = Text(readonly=True)
    request_id = Text(readonly=True)


PAGE_MODELS = frozenset({"view", "favourite", "dashboard"})
"""The models that pages use. Agents have no access to them: a person's layouts must not become input of agents."""

STAMPED: Mapping[str, tuple[str, ...]] = {"comment": ("written_at",)}
"""Maps a model to the time stamps that the service sets when a record is created."""

EDIT_STAMPS: Mapping[str, Mapping[str, str]] = {"comment": {"text": "edited_at"}}
"""Maps a model and a field to the time stamp that the service sets when the field of an existing record changes."""

SET_ONCE: Mapping[str, tuple[str, ...]] = {"comment": ("model", "record")}
"""Maps a model to the fields that callers set only in a new record."""

_KEPT = ("get", "list", "search", "create", "update", "delete")
_NAME_LENGTH = 200
_JSON_LENGTH = 50_000


class SavedView(
    Model, name="view", label_de="Ansicht", plural_de="Ansichten", icon="list", shown_as="name", commands=_KEPT
):
    """A saved view of a list: its filters, order and columns, for its owner or shared with everyone."""

    owner = Ref("user", required=True, readonly=True, default=CALLER, on_delete="cascade")
    model = Text(required=True, max_length=100, index=True)
    name = Text(required=True, max_length=_NAME_LENGTH)
    shared = Bool(required=True, default=False, help="Whether everyone who reads the model sees the view")
    query = LongText(max_length=_JSON_LENGTH, help="The query object as JSON: filter and order")
    columns = LongText(max_length=_JSON_LENGTH, help="The columns as JSON: names of fields, or objects with a width")
    density = Select(Option("compact", de="Kompakt"), Option("relaxed", de="Weit"), default="compact")


class Favourite(Model, label_de="Favorit", plural_de="Favoriten", icon="bookmark", shown_as="name", commands=_KEPT):
    """A page that a person has marked."""

    owner = Ref("user", required=True, readonly=True, default=CALLER, on_delete="cascade")
    name = Text(required=True, max_length=_NAME_LENGTH)
    path = Text(required=True, max_length=500, help="The address of the page, from /")
    position = Number(default=0, min_value=0, max_value=1_000)


class Dashboard(
    Model, label_de="Dashboard", plural_de="Dashboards", icon="layout-dashboard", shown_as="name", commands=_KEPT
):
    """A dashboard: tiles with figures, charts and lists, for its owner or shared with everyone."""

    owner = Ref("user", required=True, readonly=True, default=CALLER, on_delete="cascade")
    name = Text(required=True, max_length=_NAME_LENGTH)
    shared = Bool(required=True, default=False, help="Whether everyone sees it; the figures are the viewer's")
    tiles = LongText(max_length=_JSON_LENGTH, help="The tiles as JSON")


class Comment(
    Model, label_de="Kommentar", plural_de="Kommentare", icon="message-square", shown_as="record", commands=_KEPT
):
    """A comment on a record. Everyone who sees the record sees its comments."""

    author = Ref("user", readonly=True, default=CALLER, on_delete="clear", help="Of an agent's comment, its person")
    agent = Text(readonly=True, default=AGENT, help="The label of the agent that wrote it")
    model = Text(required=True, max_length=100)
    record = Text(required=True, max_length=1_000, index=True, help="The id of the record")
    text = LongText(
        required=True, personal="NOTES", max_length=10_000, help="@ and the name of a user notify this person"
    )
    mentions = Structure(readonly=True, help="The mentioned people, as far as you see them and the text")
    written_at = Moment(readonly=True, index=True)
    edited_at = Moment(readonly=True, help="When the text was changed last")


CURRENCY = DeclaredSetting(
    "base.currency",
    (
        "none", "EUR", "USD", "GBP", "CHF", "SEK", "NOK", "DKK", "PLN", "CZK", "RON", "BGN", "UAH", "TRY", "CAD", "AUD",
        "NZD", "ZAR", "INR", "CNY", "BRL", "MXN", "SGD", "HKD",
    ),
    help="The currency of all amounts, which pages show beside them",
)  # fmt: skip
"""The setting for the currency. Only currencies with two decimals are listed, because money fields store hundredths."""

MODULE = Module(
    "base",
    label="Base",
    label_de="Verwaltung",
    icon="settings",
    version="1.1.0",
    settings=(CURRENCY,),
    models=(
        *(User, RoleRecord, UserRole, GrantRecord, Session, AgentToken, Plan, AuditEntry, Setting),
        *(SavedView, Favourite, Dashboard, Comment),
    ),
)
