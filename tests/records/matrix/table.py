"""The rights of callers in the records service, as people have agreed on them. They are written by hand and not derived
from the code.

The table covers the roles of the shipped modules, the scopes of agents, and callers without rights. A new model,
command or address fails the test until someone adds it here.
"""

from collections.abc import Mapping

READ = "get list search"
SEEN = f"{READ} related series"
"""The commands that come with the right to read and search records."""
ALL = f"{SEEN} create update delete export import history count_by"

KEPT = f"{READ} create update delete"

COMMANDS: Mapping[str, str] = {
    "party": ALL,
    "address": ALL,
    "lead": f"{ALL} qualify propose win lose reopen convert",
    "activity": f"{ALL} finish reopen",
    "ticket": f"{ALL} start wait solve close reopen",
    "product": ALL,
    "invoice": f"{ALL} post settle reopen cancel",
    "invoice_line": ALL,
    "payment": ALL,
    "user": f"{ALL} invite deactivate home find recent",
    "role": ALL,
    "user_role": ALL,
    "grant": ALL,
    "setting": f"{ALL} data_map decide",
    "session": f"{READ} revoke",
    "agent_token": f"{READ} revoke calls",
    "view": KEPT,
    "dashboard": KEPT,
    "favourite": KEPT,
    "comment": f"{KEPT} people",
    "plan": f"{READ} reject withdraw propose watch",
    "audit_entry": f"{READ} export verify",
}
"""Maps each model to all of its commands. An administrator may run them all."""

EVERYBODY: Mapping[str, str] = {
    "user": "get related home find recent",
    "view": KEPT,
    "dashboard": KEPT,
    "favourite": KEPT,
    "comment": COMMANDS["comment"],
    "session": COMMANDS["session"],
    "agent_token": COMMANDS["agent_token"],
    "plan": COMMANDS["plan"],
}
"""The commands of a person without a role: for the own account, and for what the person has created."""

ROLES: Mapping[str, Mapping[str, str]] = {
    "administrator": COMMANDS,
    "sales_manager": {
        "party": COMMANDS["party"],
        "address": COMMANDS["address"],
        "lead": COMMANDS["lead"],
        "activity": COMMANDS["activity"],
        "ticket": COMMANDS["ticket"],
        "user": SEEN,
    },
    "clerk": {
        "party": f"{SEEN} count_by",
        "address": SEEN,
        "lead": f"{SEEN} create import update count_by history qualify lose",
        "activity": f"{SEEN} create import update finish",
        "ticket": f"{SEEN} create import update count_by history start wait solve close reopen",
        "user": SEEN,
    },
    "accountant": {
        "party": f"{SEEN} update export history",
        "address": f"{SEEN} create import update",
        "product": COMMANDS["product"],
        "invoice": COMMANDS["invoice"],
        "invoice_line": COMMANDS["invoice_line"],
        "payment": COMMANDS["payment"],
    },
    "keeper": {
        **{model: COMMANDS[model] for model in COMMANDS if model not in EVERYBODY},
        "setting": ALL,
        "audit_entry": f"{READ} export",
    },
    "none": {},
}
"""Maps each role to its additional commands. The role of the keeper exists only in the test: it has nearly every
command, but sees only one record of each model."""

HIDDEN: Mapping[str, str] = {
    "party": "website",
    "address": "city",
    "lead": "lost_reason",
    "activity": "due",
    "ticket": "resolution",
    "product": "tax_bp",
    "invoice": "notes",
    "invoice_line": "product",
    "payment": "paid_on",
    "role": "description",
    "grant": "clear",
    "setting": "value",
    "audit_entry": "request_id",
}
"""Maps each model to the field that is hidden from the keeper."""

MASKED: Mapping[str, str] = {
    "party": "name email phone notes",
    "address": "street postcode",
    "lead": "contact_name contact_email contact_phone notes",
    "activity": "notes",
    "ticket": "requester_name requester_email description",
    "payment": "reference",
}
"""Maps each model to the fields that the keeper and all agents see as placeholder tokens."""

PEOPLE: Mapping[str, str] = {
    "root": "administrator",
    "alice": "sales_manager",
    "bob": "clerk",
    "carol": "accountant",
    "keeper": "keeper",
    "dan": "none",
}
"""Maps each person to the person's role."""

AGENTS: Mapping[str, tuple[str, str]] = {
    "root's agent": ("root", "*"),
    "alice's agent": ("alice", "*"),
    "keeper's agent": ("keeper", "*"),
    "alice's reader": ("alice", "*.get"),
    "bob's narrow": ("bob", "lead.get"),
    "carol's biller": ("carol", "invoice.*"),
    "erin's agent": ("erin", "*"),
}
"""Maps each agent to its person and its scope. Erin had the role of alice when she created her agent, and no longer has
it."""

NEVER_AGENTS = frozenset(
    {
        *("plan.reject", "user.invite", "session.revoke", "audit_entry.verify"),
        *("user.home", "user.find", "user.recent", "user.deactivate", "agent_token.calls"),
        *("setting.data_map", "setting.decide", "comment.people"),
        *(f"{model}.{name}" for model in ("view", "dashboard", "favourite") for name in KEPT.split()),
    }
)
"""The commands that no scope gives to an agent."""

WITHOUT_SCOPE = frozenset({"plan.get", "plan.list", "plan.search", "plan.withdraw"})
"""The commands on its own plans that an agent may run with any scope."""

NO_TOOLS = frozenset(
    {"related", "series", "home", "find", "recent", "calls", "deactivate", "data_map", "decide", "people"}
)
PAGES = frozenset({"view", "dashboard", "favourite"})
"""The commands and the models for pages. They are not MCP tools."""


def as_tools(held_commands: frozenset[str] | set[str]) -> set[str]:
    """Return those commands of a caller that are tools for it."""
    return {
        command
        for command in held_commands
        if command.partition(".")[2] not in NO_TOOLS and command.partition(".")[0] not in PAGES
    }


PROPOSED_ONLY = frozenset(
    {
        *(f"{model}.delete" for model, command_names in COMMANDS.items() if "delete" in command_names.split()),
        *(f"{model}.create" for model in ("user", "role", "user_role", "grant", "setting")),
        *(f"{model}.update" for model in ("user", "role", "user_role", "grant", "setting")),
        "lead.convert",
        "invoice.post",
        "invoice.cancel",
        *("payment.create", "payment.update", "product.create", "invoice.settle", "invoice.reopen", "lead.win"),
    }
)
"""The commands that an agent cannot run directly by default: a person must approve them."""

OUTSIDERS = (
    "anonymous",
    "forged",
    "expired session",
    "ended session",
    "person switched off",
    "expired agent",
    "ended agent",
    "agent of a person switched off",
)
"""Callers whose only response is that they are not authenticated."""

ROUTES: Mapping[str, str] = {
    "POST /api/auth/login": "password",
    "POST /api/auth/agent-token": "person",
    "GET /api/commands": "caller",
    "GET /api/meta": "caller",
    "GET /api/openapi.json": "caller",
    "POST /api/approve/{plan_id}": "person",
    "POST /api/{model}/{command}": "command",
    "POST /mcp": "caller",
    "GET /healthz": "anybody",
    "GET /setup": "link",
    "POST /setup": "link",
}
"""Maps each address to its permitted callers: people with a password or a link, all callers, only people, callers with
the command, or anyone."""

WITHOUT_REF: Mapping[str, frozenset[str]] = {"carol's biller": frozenset({"invoice.create", "invoice.import"})}
"""Maps a role to the commands that it does not get because it cannot read the records that a required ref must name,
such as the party of an invoice."""

ONES_OWN = frozenset({"user", "session", "agent_token", "view", "dashboard", "favourite"})
"""Models of which each person has own records, and sees those of others only with a role."""

SEES_OTHERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("view", "dashboard", "favourite"), frozenset({"administrator"})),
    "user": frozenset({"administrator", "sales_manager", "clerk"}),
    "session": frozenset({"administrator"}),
    "agent_token": frozenset({"administrator"}),
}
"""The roles that see the records of others."""


READS_LEADS = frozenset({"administrator", "sales_manager", "clerk", "keeper"})
"""The roles that read leads, and so the comments on the leads that they see."""

CHANGES_COMMENTS: Mapping[str, frozenset[str]] = {
    "update": frozenset({"root"}),
    "delete": frozenset({"root", "root's agent", "alice", "alice's agent"}),
}
"""The callers who change and delete comments of root: an agent changes only its own, a manager only deletes."""


PLANS: Mapping[tuple[str, str, str], str] = {
    ("alice's agent", "lead.update", "ours"): "alice root bob keeper",
    ("alice's agent", "lead.update", "hidden"): "alice root bob",
    ("carol's biller", "invoice.delete", "ours"): "carol root keeper",
    ("root's agent", "setting.update", "hidden"): "root",
    ("keeper's agent", "ticket.update", "ours"): "keeper root alice bob",
}
"""Maps a plan, by agent, command and kind of record, to the people who see and decide it: those who may run its command
on that record."""


def holds(caller: str) -> frozenset[str]:
    """Return the commands, such as `lead.get`, of a person or an agent."""
    if caller in PEOPLE:
        role = ROLES[PEOPLE[caller]]
        return _named(EVERYBODY) | _named(role)
    person, scope = AGENTS[caller]
    of_person = holds(person) if person in PEOPLE else _named(EVERYBODY)
    remaining_commands = of_person - NEVER_AGENTS - WITHOUT_REF.get(caller, frozenset())
    return frozenset(
        command for command in remaining_commands if command in WITHOUT_SCOPE or _is_covered(scope, command)
    )


def role_of(caller: str) -> str:
    """Return the role of a person, or of the person behind an agent."""
    person = AGENTS[caller][0] if caller in AGENTS else caller
    return PEOPLE.get(person, "none")


def exists(caller: str, model: str, row_kind: str, name: str = "") -> bool:
    """Return whether the record of this kind (`ours`, `hidden` or `missing`) exists for a caller who may read the
    model, and for the command with this name."""
    if row_kind == "missing":
        return False
    if model == "comment" and (role_of(caller) not in READS_LEADS or not _reads_leads(caller)):
        return False
    if model == "comment" and caller not in CHANGES_COMMENTS.get(name, {caller}):
        return False
    if row_kind == "ours":
        return True
    role = role_of(caller)
    return role in SEES_OTHERS[model] if model in ONES_OWN else role != "keeper"


def _reads_leads(caller: str) -> bool:
    return not {"lead.get", "lead.list", "lead.search"}.isdisjoint(holds(caller))


def _is_covered(scope: str, command: str) -> bool:
    model, _, name = command.partition(".")
    return scope in ("*", command, f"{model}.*", f"*.{name}")


def _named(commands: Mapping[str, str]) -> frozenset[str]:
    return frozenset(
        f"{model}.{command}" for model, command_names in commands.items() for command in command_names.split()
    )
