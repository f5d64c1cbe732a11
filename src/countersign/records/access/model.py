"""Users, roles, grants, sessions and agent tokens, as models like any other."""

from countersign.declare import Bool, LongText, Model, Moment, Ref, Select, Text

RULING = frozenset({"user", "role", "user_role", "grant", "session", "agent_token", "setting"})
"""The models that say who may do what: writing one changes callers' rights."""


class User(Model, shown_as="username"):
    """A person who signs in."""

    username = Text(required=True, unique=True, longest=100)
    name = Text(personal="PERSON", help="What others read")
    email = Text(personal="EMAIL", format="email")
    language = Select("en", "de", help="Of letters")
    letters = Select("digest", "none", help="About plans that wait for the person; a digest unless none are wanted")
    is_active = Bool(required=True, default=True, help="Switched off, sessions and agents of the person end at once")


class RoleRecord(Model, name="role"):
    """A role: what its members may do is the sum of its grants."""

    title = Text(required=True, unique=True, longest=100, help="The name modules and grants know it by")
    description = Text()
    rights = Text(help="Beyond models, comma separated: base.unmask")


class UserRole(Model, label="Role of a user", plural="Roles of users"):
    """That a user has a role."""

    user = Ref("user", required=True, on_delete="cascade")
    role = Ref("role", required=True, on_delete="cascade")


class GrantRecord(Model, name="grant"):
    """What a role may do with one model. Lists are comma separated; * means all."""

    role = Ref("role", required=True, on_delete="cascade")
    model = Text(required=True, longest=100, index=True)
    commands = Text(required=True)
    clear = LongText(help="Fields read in clear")
    masked = LongText(help="Personal fields seen as placeholder tokens")
    write = LongText(help="Fields it may set")
    rows = LongText(help='Conditions on the records it reaches: [{"field": …, "op": …, "value": …}]')


class Session(Model, commands=("get", "list", "search")):
    """A person's sign-in."""

    user = Ref("user", required=True, on_delete="cascade", readonly=True)
    started_at = Moment(readonly=True)
    expires_at = Moment(readonly=True)
    ended_at = Moment(readonly=True)


class AgentToken(Model, commands=("get", "list", "search")):
    """A token by which an agent acts for a person, cut to its scopes."""

    label = Text(required=True, readonly=True, former_name="title")
    user = Ref("user", required=True, on_delete="cascade", readonly=True)
    scopes = LongText(readonly=True)
    unmask = LongText(readonly=True, help="Fields it may read in clear")
    issued_at = Moment(readonly=True)
    expires_at = Moment(readonly=True)
    ended_at = Moment(readonly=True)


class Setting(Model):
    """A setting of the engine, such as who must approve a command."""

    title = Text(required=True, unique=True, label="Name", longest=200)
    value = LongText(required=True, help="JSON")
