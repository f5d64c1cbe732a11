"""Rules about how a model is presented: icon, title, subtitle, measures, views, tones, and the risk of proposals."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from countersign.declare.condition import CALLER, NEXT_QUARTER, TODAY, Where
from countersign.declare.fields.kinds import Date, Number, Select
from countersign.declare.model import Declared
from countersign.declare.presentation import (
    FUNCTIONS_WITHOUT_FIELD,
    MEASURE_FUNCTIONS,
    RISK_LEVELS,
    TONES,
    ListView,
    Measure,
    Risk,
)
from countersign.declare.rules.conditions import condition_error
from countersign.declare.rules.declarations import Declarations, member_error

MAX_SUBTITLE_FIELDS = 3
MAX_ORDER_FIELDS = 5
ALL_RECORDS = "all"
"""The key of the view of all records, which no model declares."""
_ICON = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)


def titles_are_fields(declarations: Declarations) -> Iterator[str]:
    """Require that the title and the subtitle of a record are fields of its model, and that the icon and the group of
    the model are valid names."""
    for model in declarations.models.values():
        if model.title_field not in (*model.fields, "id"):
            yield member_error(model, "title_field", f"there is no field {model.title_field!r}: name a field, or id")
        for name in model.subtitle_fields:
            if name not in model.fields:
                yield member_error(model, "subtitle_fields", f"there is no field {name!r}: name fields of {model.name}")
        if len(model.subtitle_fields) > MAX_SUBTITLE_FIELDS:
            yield member_error(model, "subtitle_fields", f"name {MAX_SUBTITLE_FIELDS} fields at most")
        if model.icon and not _ICON.fullmatch(model.icon):
            yield member_error(model, "icon", f"{model.icon!r} is not the name of an icon: write it like credit-card")
        if model.group and not _NAME.fullmatch(model.group):
            yield member_error(model, "group", f"{model.group!r} must be lower-case letters, digits and _: rename it")


def measures_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that a measure has a known function and a numeric field, that its date is a date field, and that its
    conditions are valid for the model."""
    for model in declarations.models.values():
        for measure in model.measures:
            text = _measure_error(model, measure)
            if text:
                yield member_error(model, "measures", text)


def _measure_error(model: Declared, measure: Measure) -> str | None:
    if measure.fn not in MEASURE_FUNCTIONS:
        return f"{measure.fn!r} is not a function: use one of {', '.join(MEASURE_FUNCTIONS)}"
    return _error_of_fields(model, measure) or _error_of_conditions(model, measure)


def _error_of_fields(model: Declared, measure: Measure) -> str | None:
    if (measure.fn in FUNCTIONS_WITHOUT_FIELD) is bool(measure.field):
        return "a count or a share has no field, and any other function needs one: correct the measure"
    if measure.field and not isinstance(model.fields.get(measure.field), Number):
        return f"{measure.field!r} is not a number of {model.name}: name a Number or Money"
    if measure.date and not isinstance(model.fields.get(measure.date), Date):
        return f"{measure.date!r} is not a date of {model.name}: name a Date"
    return None


def _error_of_conditions(model: Declared, measure: Measure) -> str | None:
    if measure.fn == "share" and (measure.when is None or measure.among is None):
        return "a share needs the conditions when and among: add them"
    if measure.fn != "share" and measure.among is not None:
        return "only a share has the condition among: take it out"
    errors = (_error_of_condition(model, condition) for condition in (measure.when, measure.among) if condition)
    return next((text for text in errors if text), None)


def _error_of_condition(model: Declared, condition: Where) -> str | None:
    """Return the error in a condition of a measure, or None. The value is sent to pages, so it must be known without
    running a command."""
    if condition.value is TODAY:
        return f"the condition {condition.field} {condition.operator} TODAY: a measure has no TODAY: take it out"
    return condition_error(model, condition, is_row_rule=False)


def views_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that a view of a list has a unique key, valid conditions, and an order by sortable fields of its
    model."""
    for model in declarations.models.values():
        counts = Counter(view.name for view in model.views)
        for view in model.views:
            text = _error_of_view(model, view) if counts[view.name] == 1 else "it is declared twice: rename one"
            if text:
                yield member_error(model, "views", f"the view {view.name!r}: {text}")


def _error_of_view(model: Declared, view: ListView) -> str | None:
    if not _NAME.fullmatch(view.name) or view.name == ALL_RECORDS:
        return f"its name must be lower-case letters, digits and _, and not {ALL_RECORDS}: rename it"
    errors = (_error_of_view_condition(model, condition) for condition in view.filter)
    return next((text for text in errors if text), None) or _error_of_order(model, view)


def _error_of_order(model: Declared, view: ListView) -> str | None:
    if len(view.order) > MAX_ORDER_FIELDS:
        return f"name {MAX_ORDER_FIELDS} fields in order at most"
    for name in (ordered_field.removeprefix("-") for ordered_field in view.order):
        if name not in model.fields or not model.fields[name].operators:
            return f"it is ordered by {name!r}: name a field that can be ordered by"
    return None


def _error_of_view_condition(model: Declared, condition: Where) -> str | None:
    """Return the error in a condition of a view, or None."""
    if condition.value is NEXT_QUARTER:
        return condition_error(model, replace(condition, value=TODAY), is_row_rule=False)
    return condition_error(model, condition, is_row_rule=condition.value is CALLER)


def tones_are_known(declarations: Declarations) -> Iterator[str]:
    """Require that the tone of an option exists."""
    for model, field in declarations.fields():
        for choice in field.choices if isinstance(field, Select) else ():
            if choice.tone is not None and choice.tone not in TONES:
                text = f"the tone {choice.tone!r} of {choice.value} does not exist: use one of {', '.join(TONES)}"
                yield member_error(model, field.name, text)


def risks_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that a rule for risk has a level and a reason, and names commands and fields of its model."""
    for model in declarations.models.values():
        for risk in model.risks:
            yield from (member_error(model, "risks", text) for text in _risk_errors(model, risk))
        moves = () if model.workflow is None else model.workflow.moves.values()
        for move in moves:
            if move.risk not in RISK_LEVELS:
                text = f"the risk {move.risk!r} does not exist: use {', '.join(RISK_LEVELS)}"
                yield member_error(model, move.name, text)


def _risk_errors(model: Declared, risk: Risk) -> Iterator[str]:
    if risk.level not in RISK_LEVELS:
        yield f"the level {risk.level!r} does not exist: use one of {', '.join(RISK_LEVELS)}"
    if not _NAME.fullmatch(risk.reason):
        yield f"the reason {risk.reason!r} must be a key of lower-case letters, digits and _: rename it"
    moves = () if model.workflow is None else tuple(model.workflow.moves)
    for name in risk.commands:
        if name not in (*model.commands, *moves):
            yield f"it names {model.name}.{name}, and there is no such command: correct it"
    for name in risk.fields:
        if name not in model.fields:
            yield f"it names {model.name}.{name}, and there is no such field: correct it"
    text = None if risk.when is None else condition_error(model, risk.when, is_row_rule=False)
    if text:
        yield text
