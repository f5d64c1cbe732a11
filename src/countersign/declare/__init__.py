"""The declaration language: the names that a module author imports."""

from countersign.declare.condition import CALLER, NEXT_QUARTER, TODAY, FieldOf, Where, where
from countersign.declare.errors import BadValue, DeclarationError
from countersign.declare.fields.field import EQUALITY, RANGES, Field, Notation, Stored
from countersign.declare.fields.kinds import Bool, Date, Decimal, Moment, Money, Number, Ref, Select, Structure
from countersign.declare.fields.text import LongText, Text
from countersign.declare.model import Declared, Model
from countersign.declare.module import ADMINISTRATOR, Grant, Module, Role, Setting
from countersign.declare.package_code import check, on
from countersign.declare.presentation import ListView, Measure, Option, Risk
from countersign.declare.table import Table
from countersign.declare.workflow import Move, Work, Workflow

__all__ = [
    "ADMINISTRATOR",
    "CALLER",
    "EQUALITY",
    "NEXT_QUARTER",
    "RANGES",
    "TODAY",
    "BadValue",
    "Bool",
    "Date",
    "Decimal",
    "DeclarationError",
    "Declared",
    "Field",
    "FieldOf",
    "Grant",
    "ListView",
    "LongText",
    "Measure",
    "Model",
    "Module",
    "Moment",
    "Money",
    "Move",
    "Notation",
    "Number",
    "Option",
    "Ref",
    "Risk",
    "Role",
    "Select",
    "Setting",
    "Stored",
    "Structure",
    "Table",
    "Text",
    "Where",
    "Work",
    "Workflow",
    "check",
    "on",
    "where",
]
