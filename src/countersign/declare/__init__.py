"""The words a module is written in: everything a module author imports, and nothing else."""

from countersign.declare.access import ADMINISTRATOR, Grant, Role
from countersign.declare.errors import BadValue, DeclarationError
from countersign.declare.fields.bool import Bool
from countersign.declare.fields.date import Date
from countersign.declare.fields.field import Field
from countersign.declare.fields.moment import Moment
from countersign.declare.fields.number import Money, Number
from countersign.declare.fields.ref import Ref
from countersign.declare.fields.select import Select
from countersign.declare.fields.structure import Structure
from countersign.declare.fields.text import LongText, Text
from countersign.declare.model import Declared, Model
from countersign.declare.module import Module, Setting
from countersign.declare.where import CALLER, TODAY, FieldOf, Where, where
from countersign.declare.work import Work
from countersign.declare.workflow import Move, Workflow

__all__ = [
    "ADMINISTRATOR",
    "CALLER",
    "TODAY",
    "BadValue",
    "Bool",
    "Date",
    "DeclarationError",
    "Declared",
    "Field",
    "FieldOf",
    "Grant",
    "LongText",
    "Model",
    "Module",
    "Moment",
    "Money",
    "Move",
    "Number",
    "Ref",
    "Role",
    "Select",
    "Setting",
    "Structure",
    "Text",
    "Where",
    "Work",
    "Workflow",
    "where",
]
