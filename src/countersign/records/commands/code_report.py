"""What the code of a package reads and changes while a command runs.

The outcome of such code depends only on the values that it reads. If an agent knows all of them, it may learn the
outcome. Otherwise its command becomes a plan, so that a person decides before anything depends on a hidden value.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from countersign.declare import Declared
from countersign.records.commands.errors import BadInput

Changes = Mapping[str, tuple[Any, Any]]
"""Maps each changed field to its values before and after."""


class NotOnTrial(BadInput):
    """A command cannot be tried. Only the trial sees this refusal."""


class CodeReport:
    """The reads and changes of the code that one command runs.

    `is_known` says whether the caller knows every value that the code has read. `personal_values` are the personal
    values that it has read. `effects` are its changes, in the form of the effects of plans. `refusal` is the reason
    with which it refuses the command, or an empty text. A trial (see `previews`) writes no connected tables.
    """

    def __init__(self, *, is_trial: bool = False) -> None:
        self.is_trial = is_trial
        self.is_known = True
        self.personal_values: set[str] = set()
        self.effects: list[dict[str, Any]] = []
        self.refusal = ""

    def require_no_trial(self) -> None:
        """End a trial before it writes a connected table, whose triggers and locks reach other applications.

        Raises:
            NotOnTrial: this is a trial.
        """
        if self.is_trial:
            self.is_known = False
            raise NotOnTrial("a trial writes no connected table")

    def note_change(self, model: Declared, record_id: str | None, action: str, changes: Changes) -> None:
        """Add a change of a record. `action` is created or changed. Values of personal fields are left out, because
        plans would keep them in clear."""
        shown = {
            name: [None, None] if model.fields[name].personal else list(pair) for name, pair in changes.items()
        }
        place: dict[str, Any] = {"model": model.name, "id": record_id or "", "links": []}
        self.effects.append({**place, "code": action, "changes": shown})


class RecordValues(Mapping[str, object]):
    """The values of a record as code reads them. Each read is noted in the report."""

    def __init__(
        self, model: Declared, values: Mapping[str, object], report: CodeReport, knows: Callable[[str], bool]
    ) -> None:
        """`knows` returns whether the caller knows the value of a field."""
        self._model = model
        self._values = values
        self._report = report
        self._knows = knows

    def __getitem__(self, name: str) -> object:
        value = self._values[name]
        field = self._model.fields.get(name)
        if field is not None:
            self._report.is_known = self._report.is_known and self._knows(name)
            if field.personal and isinstance(value, str):
                self._report.personal_values.add(str(value))
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
