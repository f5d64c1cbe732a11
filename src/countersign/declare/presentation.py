"""The presentation of a model to people: labels and colours of options, measures of dashboards, views of lists, and the
risk of proposals."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from countersign.declare.condition import Where

Tone: TypeAlias = Literal["info", "cyan", "violet", "good", "bad", "warn", "grey"]
"""The colour of an option. A page never shows the colour without the label."""
TONES: tuple[Tone, ...] = ("info", "cyan", "violet", "good", "bad", "warn", "grey")

RiskLevel: TypeAlias = Literal["low", "medium", "high"]
RISK_LEVELS: tuple[RiskLevel, ...] = ("low", "medium", "high")
"""The levels in ascending order."""

MeasureFunction: TypeAlias = Literal["count", "sum", "avg", "median", "share"]
MEASURE_FUNCTIONS: tuple[MeasureFunction, ...] = ("count", "sum", "avg", "median", "share")
FUNCTIONS_WITHOUT_FIELD: frozenset[MeasureFunction] = frozenset({"count", "share"})

Words: TypeAlias = Mapping[str, str]
"""A text by language: `en` and `de`."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a select, with its label in English and German and its tone.

    The default of `en` is the value with spaces, and the default of `de` is the English label. Without `tone`, an
    option is grey, except in the state field of a workflow: there, `default_tone` chooses the tone.
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
    """A number that dashboards and tiles show: a function over a field, the count of records, or a share of them.

    `better` is the direction of change that counts as an improvement. `date` is the field whose date assigns a record
    to a period; default: the first date field. With `when`, only records that meet the condition are counted. A share
    is the number of those records divided by the number of records that meet the condition `among`. An `ahead` measure
    covers the days from today on, as many as the period has.
    """

    fn: MeasureFunction = "count"
    field: str = ""
    better: Literal["up", "down"] = "up"
    date: str = ""
    en: str = ""
    de: str = ""
    when: Where | None = None
    among: Where | None = None
    ahead: bool = False


@dataclass(frozen=True, slots=True)
class ListView:
    """A view of the list of a model: a tab beside those that people save. The list shows the first view of its model at
    first.

    `name` is its key in addresses. The conditions in `filter` may compare with `CALLER`, `TODAY` and `NEXT_QUARTER`.
    `order` names up to five fields; a minus before a name means descending.
    """

    name: str
    en: str
    de: str = ""
    filter: tuple[Where, ...] = ()
    order: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Risk:
    """A rule that gives proposals a risk level, with the key of the text that explains the risk.

    The rule applies to proposals of the `commands` (default: all) that set one of the `fields` (default: any). With
    `when`, the value that the proposal gives to the condition's field must meet the condition.
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
    """Return the tone of a state that declares none. Known words such as "won", "lost" and "pending" have fixed tones.
    The other states get their tones by position."""
    known = _TONES.get(option.lower())
    if known is not None:
        return known
    steps = [option for option in options if option.lower() not in _TONES]
    place = steps.index(option)
    return _STEPS[place] if place < len(_STEPS) else "grey"


DEFAULT_RISKS: Mapping[str, RiskLevel] = {"create": "low", "update": "low", "import": "medium", "delete": "high"}
"""The risk of generated commands if no rule of the model applies. The default risk of an action is medium."""

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
