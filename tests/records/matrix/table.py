"""Who may do what in the records service, as people agreed on it: written by hand and never worked out from the code.

Of the roles that modules ship, of an agent's scopes, and of what is left to somebody without any right. A new model,
command or address has no place here until somebody has decided on it.
"""

from collections.abc import Mapping

READ = "get list search"
SEEN = f"{READ} related series"
"""What reading a record and searching bring along."""
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
    "setting": ALL,
    "session": f"{READ} revoke",
    "agent_token": f"{READ} revoke calls",
    "view": KEPT,
    "dashboard": KEPT,
    "favourite": KEPT,
    "comment": KEPT,
    "plan": f"{READ} reject withdraw propose watch",
    "audit_entry": f"{READ} export verify",
}
"""Every command there is, by model. An administrator has them all."""

EVERYBODY: Mapping[str, str] = {
    "user": "get related home find recent",
    "view": KEPT,
    "dashboard": KEPT,
    "favourite": KEPT,
    "comment": KEPT,
    "session": COMMANDS["session"],
    "agent_token": COMMANDS["agent_token"],
    "plan": COMMANDS["plan"],
}
"""What is left to a person without a role: oneself, and what one has handed out."""

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
        "audit_entry": f"{READ} export",
    },
    "none": {},
}
"""What each role adds. The keeper is the test's own: nearly every command, but of each model one record alone."""

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
"""By model, the field that is kept from the keeper."""

MASKED: Mapping[str, str] = {
    "party": "name email phone notes",
    "address": "street postcode",
    "lead": "contact_name contact_email contact_phone notes",
    "activity": "notes",
    "ticket": "requester_name requester_email description",
    "payment": "reference",
}
"""By model, the fields that the keeper, and every agent, sees as placeholder tokens."""

PEOPLE: Mapping[str, str] = {
    "root": "administrator",
    "alice": "sales_manager",
    "bob": "clerk",
    "carol": "accountant",
    "keeper": "keeper",
    "dan": "none",
}
"""Who has which role."""

AGENTS: Mapping[str, tuple[str, str]] = {
    "root's agent": ("root", "*"),
    "alice's agent": ("alice", "*"),
    "keeper's agent": ("keeper", "*"),
    "alice's reader": ("alice", "*.get"),
    "bob's narrow": ("bob", "lead.get"),
    "carol's biller": ("carol", "invoice.*"),
    "erin's agent": ("erin", "*"),
}
"""Whose agents they are, and by which scope. Erin had alice's role when she made hers, and has it no longer."""

NEVER_AGENTS = frozenset(
    {
        *("plan.reject", "user.invite", "session.revoke", "audit_entry.verify"),
        *("user.home", "user.find", "user.recent", "user.deactivate", "agent_token.calls"),
        *(f"{model}.{name}" for model in ("view", "dashboard", "favourite", "comment") for name in KEPT.split()),
    }
)
"""What no scope gives to an agent."""

WITHOUT_SCOPE = frozenset({"plan.get", "plan.list", "plan.search", "plan.withdraw"})
"""What an agent may do with its own plans whatever its scopes are."""

NO_TOOLS = frozenset({"related", "series", "home", "find", "recent", "calls", "deactivate"})
PAGES = frozenset({"view", "dashboard", "favourite", "comment"})
"""The commands and the models that are for pages, and no tools."""


def as_tools(held: frozenset[str] | set[str]) -> set[str]:
    """Of the commands of a caller, those that are tools for it."""
    return {each for each in held if each.partition(".")[2] not in NO_TOOLS and each.partition(".")[0] not in PAGES}


PROPOSED_ONLY = frozenset(
    {
        *(f"{model}.delete" for model, words in COMMANDS.items() if "delete" in words.split()),
        *(f"{model}.create" for model in ("user", "role", "user_role", "grant", "setting")),
        *(f"{model}.update" for model in ("user", "role", "user_role", "grant", "setting")),
        "lead.convert",
        "invoice.post",
        "invoice.cancel",
        *("payment.create", "payment.update", "product.create", "invoice.settle", "invoice.reopen", "lead.win"),
    }
)
"""What an agent never carries out as it is shipped: a person approves."""

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
"""Whom nothing is answered but that they are nobody."""

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
"""Who is let in: people with a password or a link, any caller, people alone, callers with the command, or anybody."""

WITHOUT_REF: Mapping[str, frozenset[str]] = {"carol's biller": frozenset({"invoice.create", "invoice.import"})}
"""What is not offered to a caller that does not read the records which a required ref must name: an invoice's party."""

ONES_OWN = frozenset({"user", "session", "agent_token", "view", "dashboard", "favourite", "comment"})
"""Models of which everybody has records of their own, and sees others' only by a role."""

SEES_OTHERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("view", "dashboard", "favourite", "comment"), frozenset({"administrator"})),
    "user": frozenset({"administrator", "sales_manager", "clerk"}),
    "session": frozenset({"administrator"}),
    "agent_token": frozenset({"administrator"}),
}
"""The roles that see other people's."""


PLANS: Mapping[tuple[str, str, str], str] = {
    ("alice's agent", "lead.update", "ours"): "alice root bob keeper",
    ("alice's agent", "lead.update", "hidden"): "alice root bob",
    ("carol's biller", "invoice.delete", "ours"): "carol root keeper",
    ("root's agent", "setting.update", "hidden"): "root",
    ("keeper's agent", "ticket.update", "ours"): "keeper root alice bob",
}
"""Who sees and decides a plan: whoever may run its command on that record. By the agent, its command and the thing."""


def holds(caller: str) -> frozenset[str]:
    """The commands, `lead.get`, that there are for a person or an agent."""
    if caller in PEOPLE:
        role = ROLES[PEOPLE[caller]]
        return _named(EVERYBODY) | _named(role)
    person, scope = AGENTS[caller]
    of_person = holds(person) if person in PEOPLE else _named(EVERYBODY)
    left = of_person - NEVER_AGENTS - WITHOUT_REF.get(caller, frozenset())
    return frozenset(each for each in left if each in WITHOUT_SCOPE or _is_covered(scope, each))


def role_of(caller: str) -> str:
    """The role of a person, or of the person behind an agent."""
    person = AGENTS[caller][0] if caller in AGENTS else caller
    return PEOPLE.get(person, "none")


def exists(caller: str, model: str, thing: str) -> bool:
    """Whether the thing, `ours`, `hidden` or `missing`, exists for a caller who may read the model."""
    if thing == "missing":
        return False
    if thing == "ours":
        return True
    role = role_of(caller)
    return role in SEES_OTHERS[model] if model in ONES_OWN else role != "keeper"


def _is_covered(scope: str, command: str) -> bool:
    model, _, name = command.partition(".")
    return scope in ("*", command, f"{model}.*", f"*.{name}")


def _named(commands: Mapping[str, str]) -> frozenset[str]:
    return frozenset(f"{model}.{each}" for model, words in commands.items() for each in words.split())
