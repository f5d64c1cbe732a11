"""Roles and what they are granted, as a module ships them; an administrator may change them afterwards."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from countersign.declare.where import Where

Names: TypeAlias = tuple[str, ...] | Literal["*"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a role may do with one model. Grants add up; where several speak of a field, the most visible wins.

    commands  names of commands, actions included, or "*"
    clear     fields it reads in clear; "*" means all
    masked    fields it sees as placeholder tokens (personal ones) – others it names are clear
    write     fields it may set, of those it sees
    rows      the records these commands reach: all of the conditions hold; empty means every record
    """

    model: str
    commands: Names = ("get", "list", "search")
    clear: Names = ()
    masked: Names = ()
    write: Names = ()
    rows: tuple[Where, ...] = ()


class Role:
    """A role with its grants. Several modules may add grants to a role of the same name.

    `rights` are beyond any model: `base.unmask` lets its holders give agents single fields in clear.
    """

    def __init__(self, name: str, *grants: Grant, label: str = "", rights: tuple[str, ...] = ()) -> None:
        self.name = name
        self.label = label or name.replace("_", " ").capitalize()
        self.grants = grants
        self.rights = rights


ADMINISTRATOR = "administrator"
"""The role that is granted everything there is; the first person has it."""
