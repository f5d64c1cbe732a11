"""The settings that row-level security policies of an existing PostgreSQL database read. Each statement on its tables
has the values of the person who calls, or for whom an agent calls."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from countersign.declare import Ref
from countersign.declare.rules.modules import SESSION_ROLE
from countersign.kernel.database.port import ConnectedSession
from countersign.kernel.errors import Unavailable
from countersign.records.access.view import Caller, ModelView, Rows, View

MISSING = "the policies of the connected database need {value}, which is empty: an administrator sets it for {username}"
NO_ROLE = (
    "the connected database needs exactly one of the roles {roles} of {username}: an administrator gives or takes roles"
)


class Sessions:
    """The sessions of callers in one existing database. `search_path` are the schemas in which names are found."""

    def __init__(self, declared: Mapping[str, str], roles: Mapping[str, str], search_path: Sequence[str]) -> None:
        """`declared` maps each setting to the field of the person that it is taken from, and `roles` the roles of
        people to roles of the database."""
        self._declared = declared
        self._roles = roles
        self._search_path = tuple(search_path)

    def of(self, caller: Caller) -> ConnectedSession:
        """Return the session of the caller.

        Raises:
            Unavailable: a value of the caller is missing. `narrowed` has hidden the models from such a caller.
        """
        known = self._values(caller)
        settings = {name: known.get(value) or "" for name, value in self._declared.items()}
        if not all(settings.values()):
            raise Unavailable(self._reason(caller, self._missing(caller)))
        return ConnectedSession(self._search_path, settings)

    def has_values(self, caller: Caller) -> bool:
        """Return whether the caller has all values that the policies need."""
        return not self._missing(caller)

    def narrowed(self, caller: Caller) -> Caller:
        """Return the caller without the models of the database if a value of the caller is missing. Otherwise policies
        may hide rows of them, so only an administrator counts as a caller who sees all records: others see no comments,
        audit entries and plans of others about them, because our own database cannot ask the policies."""
        missing = self._missing(caller)
        if not missing:
            return caller if caller.is_administrator or not self._declared else _with_policies(caller)
        models = caller.view.models
        reason = self._reason(caller, missing)
        withheld = dict.fromkeys([name for name in models if name not in caller.view.stored], reason)
        return replace(caller, view=_without_tables(caller.view), withheld={**caller.withheld, **withheld})

    def _missing(self, caller: Caller) -> list[str]:
        known = self._values(caller)
        return [value for value in dict.fromkeys(self._declared.values()) if not known.get(value)]

    def _values(self, caller: Caller) -> Mapping[str, str | None]:
        return {
            "user.id": caller.user_id,
            "user.username": caller.username,
            "user.external_id": caller.external_id,
            "user.tenant": caller.tenant,
            SESSION_ROLE: self._role_of(caller),
        }

    def _role_of(self, caller: Caller) -> str | None:
        """Return the role of the database for the caller. Several would contradict each other."""
        roles = {role for name, role in self._roles.items() if name in caller.roles}
        return next(iter(roles)) if len(roles) == 1 else None

    def _reason(self, caller: Caller, missing: Sequence[str]) -> str:
        if SESSION_ROLE in missing:
            return NO_ROLE.format(roles=", ".join(self._roles), username=caller.username)
        return MISSING.format(value=" and ".join(missing), username=caller.username)


_BY_POLICY: Rows = ((),)
"""The records that the policies show. No other condition applies to them."""


def _with_policies(caller: Caller) -> Caller:
    models = {
        name: each if each.model.table is None else _within_policies(each) for name, each in caller.view.models.items()
    }
    return replace(caller, view=replace(caller.view, models=models))


def _within_policies(view: ModelView) -> ModelView:
    """Return the view of a model of which policies may hide records, and also records that it refers to."""
    rows = {command: _BY_POLICY if each is None else each for command, each in view.rows.items()}
    refs = {name for name in view.fields if isinstance(view.model.fields.get(name), Ref)}
    return replace(view, rows=rows, partly_visible=view.partly_visible | refs)


def _without_tables(view: View) -> View:
    return replace(view, models=view.stored)
