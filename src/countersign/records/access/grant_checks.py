"""What a grant or a role must say to be understood, found out when it is written rather than when somebody calls."""

from collections.abc import Collection, Mapping

from countersign.declare.fields.field import Stored
from countersign.declare.registry import Registry
from countersign.records.access.grant_rows import BadGrant, read_rows
from countersign.records.access.grants import listed
from countersign.records.access.visibility import RIGHTS, Commands


def check_grant(registry: Registry, commands: Commands, values: Mapping[str, Stored]) -> None:
    """That a grant names a model there is, commands and fields it has, and rows that fit it.

    Raises:
        BadGrant: it does not; the text names the field of the grant and what may stand there.
    """
    name = str(values["model"])
    model = registry.models.get(name)
    if model is None:
        raise BadGrant(f"grant.model: there is no model {name}; there are {', '.join(sorted(registry.models))}")
    _require_known(values, "commands", sorted(commands.get(name, ())), name)
    for each in ("clear", "masked", "write"):
        _require_known(values, each, list(model.fields), name)
    rows = values.get("rows")
    try:
        read_rows(model, None if rows is None else str(rows))
    except BadGrant as error:
        raise BadGrant(f"grant.{error.detail}. {error.remedy}") from error


def check_role(registry: Registry, commands: Commands, values: Mapping[str, Stored]) -> None:
    """That a role's rights are among those there are.

    Raises:
        BadGrant: one is not.
    """
    rights = values.get("rights")
    for each in listed(None if rights is None else str(rights)):
        if each not in RIGHTS:
            raise BadGrant(f"role.rights: there is no right {each}; there are {', '.join(sorted(RIGHTS))}")


def _require_known(values: Mapping[str, Stored], field: str, known: Collection[str], model: str) -> None:
    value = values.get(field)
    for each in listed(None if value is None else str(value)):
        if each != "*" and each not in known:
            raise BadGrant(f"grant.{field}: {model} has no {each}; write * or some of {', '.join(known)}")
