"""How a model is presented to people: words and tones of options, measures of dashboards, and the risk of proposals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from countersign.declare.condition import Where

Tone: TypeAlias = Literal["info", "cyan", "violet", "good", "bad", "warn", "grey"]
"""The colour of a state. A page never shows the colour without the word."""
TONES: tuple[Tone, ...] = ("info", "cyan", "violet", "good", "bad", "warn", "grey")

RiskLevel: TypeAlias = Literal["low", "medium", "high"]
RISK_LEVELS: tuple[RiskLevel, ...] = ("low", "medium", "high")
"""The levels in ascending order."""

MeasureFunction: TypeAlias = Literal["count", "sum", "avg", "median"]
MEASURE_FUNCTIONS: tuple[MeasureFunction, ...] = ("count", "sum", "avg", "median")

Words: TypeAlias = Mapping[str, str]
"""A text by language: `en` and `de`."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a select, with its label in English and German and its tone.

    Without `en`, the label is the value with spaces; without `de`, it is the English label. Without `tone`, the state
    field of a workflow gets a tone from the position and the word of the option, and any other field gets grey.
    """

    value: str
    en: str = ""
    de: str = ""
    tone: Tone | None = None

    @property
    def label(self) -> Words:
        """Return the label in each language."""
        english = self.en or self.value.replace("_", " ").replace("-", " ").capitalize()
        return {"en": english, "de": self.de or english}


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that dashboards and tiles show: a function over a field, or the count of records.

    `better` is the direction of a change that is good. `date` is the field by whose date records are counted; default:
    the first date field.
    """

    fn: MeasureFunction = "count"
    field: str = ""
    better: Literal["up", "down"] = "up"
    date: str = ""
    en: str = ""
    de: str = ""


@dataclass(frozen=True, slots=True)
class Risk:
    """A rule for the risk of a proposal: its level and the key of its reason.

    It applies to proposals of the `commands` (default: all) that set one of the `fields` (default: any). With `when`,
    the value that the proposal gives to the condition's field must meet the condition.
    """

    level: RiskLevel
    reason: str
    commands: tuple[str, ...] = ()
    fields: tuple[str, ...] = field(default=())
    when: Where | None = None


_GOOD = frozenset(
    {"won", "done", "paid", "solved", "closed", "executed", "approved", "completed", "active", "accepted", "delivered"}
)
_BAD = frozenset({"lost", "cancelled", "canceled", "rejected", "failed", "refused", "withdrawn", "overdue", "blocked"})
_WAITING = frozenset({"waiting", "pending", "due", "on_hold"})
_NEUTRAL = frozenset({"draft", "stale", "expired", "archived"})
_TONES: Mapping[str, Tone] = {
    **dict.fromkeys(_GOOD, "good"),
    **dict.fromkeys(_BAD, "bad"),
    **dict.fromkeys(_WAITING, "warn"),
    **dict.fromkeys(_NEUTRAL, "grey"),
}
_STEPS: tuple[Tone, ...] = ("info", "cyan", "violet")


def default_tone(options: tuple[str, ...], option: str) -> Tone:
    """Return the tone of a workflow's state that declares none: good and bad ends and waiting states by their word,
    the other states by their position."""
    known = _TONES.get(option.lower())
    if known is not None:
        return known
    steps = [each for each in options if each.lower() not in _TONES]
    place = steps.index(option)
    return _STEPS[place] if place < len(_STEPS) else "grey"


DEFAULT_RISKS: Mapping[str, RiskLevel] = {"create": "low", "update": "low", "import": "medium", "delete": "high"}
"""The risk of generated commands without a rule of the model. An action has medium risk."""

LABELS: Mapping[str, tuple[str, str]] = {
    "get": ("Open", "Öffnen"),
    "list": ("List", "Auflisten"),
    "search": ("Search", "Suchen"),
    "create": ("Create", "Anlegen"),
    "update": ("Change", "Ändern"),
    "delete": ("Delete", "Löschen"),
    "export": ("Export", "Exportieren"),
    "import": ("Import", "Importieren"),
    "history": ("History", "Verlauf"),
    "count_by": ("Count", "Zählen"),
    "related": ("Related", "Verknüpft"),
    "series": ("Over time", "Im Zeitverlauf"),
}
"""The labels of generated commands in English and German."""
