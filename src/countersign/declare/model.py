"""Models: a class whose attributes are fields becomes a table, commands, tools and pages."""

import inspect
import re
from collections.abc import Mapping
from typing import ClassVar

from countersign.declare.errors import DeclarationError
from countersign.declare.fields.field import Field
from countersign.declare.where import Where
from countersign.declare.workflow import Workflow

GENERATED = ("get", "list", "search", "create", "update", "delete")
EXTRA = ("export", "import", "history", "count_by")


class Model:
    """What a module author subclasses: one short class per model.

    Its docstring says what a record is. Beside the fields it may say:

    label, plural  what people read; default: the class name
    workflow       which actions move the governed select field
    locked         conditions under which a record cannot be changed or deleted but by its actions
    locked_with    a ref field: this record is locked while the one it refers to is
    shown_as       the field that stands for a record where only one can be shown; default: the first text
    commands       the generated commands it has; default: all
    """

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""
    plural: ClassVar[str] = ""
    fields: ClassVar[Mapping[str, Field]] = {}
    workflow: ClassVar[Workflow | None] = None
    locked: ClassVar[tuple[Where, ...]] = ()
    locked_with: ClassVar[str | None] = None
    shown_as: ClassVar[str] = ""
    commands: ClassVar[tuple[str, ...]] = GENERATED + EXTRA
    module: ClassVar[str] = ""
    source: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = cls.__dict__
        cls.name = own.get("name") or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
        cls.label = own.get("label") or cls.name.replace("_", " ").capitalize()
        cls.plural = own.get("plural") or _plural(cls.label)
        cls.fields = {name: value for name, value in own.items() if isinstance(value, Field)}
        cls.shown_as = own.get("shown_as") or next((n for n, f in cls.fields.items() if f.kind == "text"), "id")
        frame = inspect.currentframe()
        cls.source = frame.f_back.f_code.co_filename if frame is not None and frame.f_back is not None else ""

    @classmethod
    def field(cls, name: str) -> Field:
        """The field of that name.

        Raises:
            DeclarationError: there is none.
        """
        found = cls.fields.get(name)
        if found is None:
            raise DeclarationError(f"{cls.source}: {cls.__name__} has no field {name!r}: declare it or correct the name")
        return found


def _plural(label: str) -> str:
    if label.endswith("y") and label[-2:-1] not in "aeiou":
        return f"{label[:-1]}ies"
    return f"{label}es" if label.endswith(("s", "x", "ch", "sh")) else f"{label}s"
