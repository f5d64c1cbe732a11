"""Describes models, views, fields and commands for a caller in `GET /api/meta`, and chooses the title fields of
records."""

from collections.abc import Mapping
from typing import Any

from countersign.declare import CALLER, NEXT_QUARTER, TODAY, Field, ListView, Measure, Module, Ref, Select
from countersign.declare.condition import Where
from countersign.declare.presentation import DEFAULT_RISKS, LABELS, RISK_LEVELS, RiskLevel, Words
from countersign.declare.registry import Registry
from countersign.kernel import clock
from countersign.records.access.view import ModelView

_OWN_LABELS: Mapping[str, tuple[str, str]] = {
    "plan.reject": ("Reject", "Ablehnen"),
    "plan.withdraw": ("Take back", "Zurücknehmen"),
    "plan.propose": ("Propose", "Vorschlagen"),
    "plan.watch": ("Watch", "Beobachten"),
    "session.revoke": ("Sign out", "Abmelden"),
    "agent_token.revoke": ("Revoke", "Widerrufen"),
    "user.invite": ("Invite", "Einladen"),
    "user.deactivate": ("Deactivate", "Deaktivieren"),
    "user.home": ("My work", "Meine Arbeit"),
    "user.recent": ("Recent", "Zuletzt geöffnet"),
    "user.find": ("Find", "Finden"),
    "agent_token.calls": ("Calls", "Aufrufe"),
    "setting.data_map": ("Data map", "Datenkarte"),
    "setting.decide": ("Decide on a field", "Über ein Feld entscheiden"),
    "audit_entry.verify": ("Verify", "Prüfen"),
    "comment.people": ("People to mention", "Erwähnbare Personen"),
}
"""The labels of the built-in commands in English and German."""

_IRREVERSIBLE = frozenset({"delete", "import", "reject", "withdraw", "propose", "revoke", "deactivate"})


def of_module(module: Module) -> dict[str, Any]:
    """Return the labels and the icon of a module."""
    return {"labels": {"en": module.label, "de": module.label_de}, "icon": module.icon}


def of_model(view: ModelView, views: Mapping[str, ModelView], registry: Registry) -> dict[str, Any]:
    """Return the description of a model for a caller. It names only fields and models that the caller sees."""
    model, module = view.model, registry.module_of[view.model.name]
    return {
        "labels": {"en": model.label, "de": model.label_de},
        "plurals": {"en": model.plural, "de": model.plural_de},
        "icon": model.icon or module.icon,
        "group": model.group or module.name,
        "title_field": title_field(view),
        "subtitle_fields": [name for name in model.subtitle_fields if name in view.fields],
        "state_field": model.state_field if model.state_field in view.fields else None,
        "measures": [_measure(view, measure) for measure in model.measures if _is_measured(view, measure)],
        "incoming": _incoming(view, views, registry),
        "command_details": [{"id": f"{model.name}.{name}", **of_command(view, name)} for name in sorted(view.commands)],
        **_flags(view, views),
    }


def _flags(view: ModelView, views: Mapping[str, ModelView]) -> dict[str, bool]:
    """Return the members that only some models have."""
    flags = {
        "is_connected": view.model.table is not None,
        "has_comments": view.has_comments and "comment" in views,
    }
    return {name: True for name, is_set in flags.items() if is_set}


def title_field(view: ModelView) -> str:
    """Return the field that names a record for this caller: `title_field` or, if the caller does not see it, `shown_as`
    or `id`."""
    candidates = (view.model.title_field, view.model.shown_as)
    return next((name for name in candidates if name in view.fields), "id")


def of_field(view: ModelView, field: Field) -> dict[str, Any]:
    """Return the labels of a field and, for a select, its choices with labels and tones."""
    choices = None
    if isinstance(field, Select):
        is_state = field.name == view.model.state_field
        choices = [
            {"value": choice.value, "label": choice.label, "tone": field.tone(choice, is_state=is_state)}
            for choice in field.choices
        ]
    return {"labels": field.labels, "choices": choices}


def of_command(view: ModelView, name: str) -> dict[str, Any]:
    """Return the labels, the verb, the risk and the reversibility of a command."""
    workflow = view.model.workflow
    move = None if workflow is None else workflow.moves.get(name)
    if workflow is not None and move is not None:
        return {
            "labels": move.labels,
            "verb": move.verb,
            "reversible": workflow.is_reversible(move),
            "risk": risk_of(view, name),
        }
    label = label_of(view.model.name, name)
    return {"labels": label, "verb": label, "reversible": name not in _IRREVERSIBLE, "risk": risk_of(view, name)}


def label_of(model: str, name: str) -> Words:
    """Return the label of a generated or built-in command by language."""
    fallback = name.replace("_", " ").capitalize()
    english, german = LABELS.get(name) or _OWN_LABELS.get(f"{model}.{name}", (fallback, fallback))
    return {"en": english, "de": german}


def risk_of(view: ModelView, name: str) -> RiskLevel:
    """Return the risk of a command that does not depend on its input."""
    workflow = view.model.workflow
    move = None if workflow is None else workflow.moves.get(name)
    own_risk: RiskLevel = DEFAULT_RISKS.get(name, "low") if move is None else move.risk
    rules = [risk for risk in view.model.risks if name in risk.commands and not risk.fields and not risk.when]
    levels: list[RiskLevel] = [own_risk, *(rule.level for rule in rules)]
    return max(levels, key=RISK_LEVELS.index)


def is_reversible(view: ModelView, name: str) -> bool:
    """Return whether another command can undo this one."""
    workflow = view.model.workflow
    move = None if workflow is None else workflow.moves.get(name)
    if workflow is not None and move is not None:
        return workflow.is_reversible(move)
    return name not in _IRREVERSIBLE


def _is_measured(view: ModelView, measure: Measure) -> bool:
    conditions = [condition.field for condition in (measure.when, measure.among) if condition]
    names = [name for name in (measure.field, measure.date, *conditions) if name]
    return all(view.sees_in_clear(name) for name in names) and date_of(view, measure) is not None


def date_of(view: ModelView, measure: Measure) -> str | None:
    """Return the date field by which a measure is counted, or None if the caller does not read it."""
    if measure.date:
        return measure.date if view.sees_in_clear(measure.date) else None
    fields = view.model.fields
    return next((name for name in view.fields if fields[name].kind == "date" and view.sees_in_clear(name)), None)


def _measure(view: ModelView, measure: Measure) -> dict[str, Any]:
    english = measure.en or (view.model.plural if not measure.field else view.model.fields[measure.field].label)
    return {
        "field": measure.field or None,
        "fn": measure.fn,
        "better": measure.better,
        "date": date_of(view, measure),
        "label": {"en": english, "de": measure.de or english},
        "filter": _filter_of(measure.when),
        "among": _filter_of(measure.among),
        "ahead": measure.ahead,
    }


def _filter_of(condition: Where | None) -> list[dict[str, object]]:
    """Return a condition as the filter of a command."""
    return [] if condition is None else [{"field": condition.field, "op": condition.operator, "value": condition.value}]


def views_of(view: ModelView, person: str) -> list[dict[str, Any]]:
    """Return the views that the model declares, without those that use a field that the caller does not see in clear.
    `person` is the id of the caller's person. Filters and orders are as `list` and `search` take them."""
    return [
        {
            "name": list_view.name,
            "label": {"en": list_view.en, "de": list_view.de or list_view.en},
            "filter": [
                {"field": condition.field, "op": condition.operator, "value": _value_now(condition.value, person)}
                for condition in list_view.filter
            ],
            "order": [
                {"field": name.removeprefix("-"), "dir": "desc" if name.startswith("-") else "asc"}
                for name in list_view.order
            ],
        }
        for list_view in view.model.views
        if all(view.sees_in_clear(name) for name in _fields_of(list_view))
    ]


def _fields_of(view: ListView) -> list[str]:
    return [*(condition.field for condition in view.filter), *(name.removeprefix("-") for name in view.order)]


def _value_now(value: object, person: str) -> object:
    """Return the value with which a condition compares at this moment."""
    if value is CALLER:
        return person
    today = clock.rfc3339(clock.now())[:10]
    if value is NEXT_QUARTER:
        return next_quarter(today)
    return today if value is TODAY else value


def next_quarter(day: str) -> str:
    """Return the first day of the quarter after the quarter of a day."""
    year, month = int(day[:4]), int(day[5:7])
    first_month = (month - 1) // 3 * 3 + 4
    return f"{year + first_month // 12:04d}-{first_month % 12:02d}-01"


def _incoming(view: ModelView, views: Mapping[str, ModelView], registry: Registry) -> list[dict[str, Any]]:
    """Return the models whose records refer to records of this model. Only models and refs that the caller sees are
    included."""
    incoming_refs: list[dict[str, Any]] = []
    for referrer in registry.referrers[view.model.name]:
        referrer_view = views.get(referrer.model.name)
        if referrer_view is not None and referrer_view.is_readable and referrer.ref.name in referrer_view.fields:
            incoming_refs.append(related_entry(referrer_view, referrer.ref))
    return incoming_refs


def related_entry(view: ModelView, ref: Ref) -> dict[str, Any]:
    """Return the model and the ref by which records refer to another one, with the plural label of the model."""
    return {
        "model": view.model.name,
        "field": ref.name,
        "label": {"en": view.model.plural, "de": view.model.plural_de},
        "field_label": ref.labels,
    }
