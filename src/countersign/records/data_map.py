"""The commands `setting.data_map` and `setting.decide`: what agents see of each column of the connected tables, and the
decisions of administrators on it.

The module text is the only place of a decision. The server reads module texts when it starts, so a decision takes
effect with the next start; until then the map shows both what agents see now and what they will see.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from countersign.declare import DeclarationError, Declared, Module, review, text, text_file
from countersign.declare.registry import Registry
from countersign.declare.review import FREE_TEXT, Choice, Decision, DecisionNote, MappedColumn, TokenLabel
from countersign.declare.rules.fields import is_label
from countersign.declare.text import Call, ModuleText, TextError
from countersign.declare.text_file import NotReplaced, Replacement
from countersign.file_access import explain_permission_error
from countersign.kernel import clock
from countersign.kernel.concurrency import uncancellable
from countersign.kernel.errors import StorageFull, is_disk_full
from countersign.records.commands import record_writer
from countersign.records.commands.errors import BadInput, TryAgain, refuse_unknown_keys
from countersign.records.commands.run import Body, Run

MAX_REASON_LENGTH = 500
EFFECT = (
    "The module text has changed. The server reads it when it starts: start the server again, and on other nodes with "
    "the same file. Until then agents see what they saw before."
)
_DECIDE = "setting.decide"
_READ_AGAIN = "read setting.data_map again"
_DECISION_KEYS = ("field", "decision", "label", "reason", "revision", "confirmed")
_CHOICES: tuple[Choice, ...] = ("personal", "clear", "hidden")

Visible: TypeAlias = Literal["values", "tokens", "nothing"]


class AgentSight(msgspec.Struct, frozen=True):
    """What agents see of a column. `label` is the label of the tokens."""

    see: Visible
    label: str | None = None


class MappedField(msgspec.Struct):
    """A column of a connected table. `agents_see` is what agents see now, and `after_restart` what the module text
    says. `choices` are the possible decisions, and `revision` is that of the line that a decision is about."""

    field: str
    name: str
    kind: str | None
    agents_see: AgentSight
    after_restart: AgentSight
    state: Literal["undecided", "guessed", "decided"]
    why: str | None
    decided_by: str | None
    decided_on: str | None
    choices: tuple[Choice, ...]
    revision: str


class MappedModel(msgspec.Struct):
    """A model with a connected table. `file` is its module text. A suspended model is hidden from every caller, because
    its table has changed or cannot be read."""

    model: str
    table: str
    file: str
    is_suspended: bool
    fields: list[MappedField]


class DataMap(msgspec.Struct):
    """All connected tables. `undecided` and `decided` count the columns that a person has to decide on, and has decided
    on. `is_restart_needed` means that agents still see fields in another way than the module texts say."""

    models: list[MappedModel]
    undecided: int
    decided: int
    is_restart_needed: bool


class DecisionResult(msgspec.Struct):
    """The column after the decision, and the numbers of the whole map. `takes_effect` is when agents see it so."""

    field: MappedField
    undecided: int
    decided: int
    takes_effect: Literal["now", "after_restart"]
    effect: str | None


@dataclass(frozen=True, slots=True)
class _ModuleFile:
    """A module text of the running server, as its file is now."""

    module: Module
    content: str
    text: ModuleText

    @property
    def path(self) -> Path:
        """Return the path of the file."""
        return Path(self.module.source)


@dataclass(frozen=True, slots=True)
class _DecisionRequest:
    """The input of `setting.decide`."""

    field: str
    choice: Choice
    label: str | None
    reason: str
    revision: str
    is_confirmed: bool


async def data_map(run: Run, model: str, body: Body) -> object:
    """Return the data map.

    Raises:
        BadInput: the input is not empty, or a module text cannot be read.
    """
    refuse_unknown_keys(body, (), "setting.data_map")
    files = await _read_files(run)
    return await asyncio.to_thread(_data_map, run, files)


async def decide(run: Run, model: str, body: Body) -> object:
    """Write the decision of an administrator into the module text, with an audit entry.

    The new file is written beside the old one, and takes its place when the audit entry is committed. If the process is
    killed in between, the audit contains a decision without effect; no decision has an effect without its entry.

    Raises:
        BadInput: the decision is not possible, is not confirmed, or the file cannot be written.
        TryAgain: the column or the file has changed since it was read.
        StorageFull: the disk is full.
    """
    request = _decision_request(body)
    files = await _read_files(run)
    file, column = await asyncio.to_thread(_find, files, request.field)
    decision = _require_possible(file, column, request)
    day = clock.rfc3339(clock.now())[:10]
    note = DecisionNote(run.caller.username, day, request.reason)
    changed = await asyncio.to_thread(review.decided, file.text, {column.place: decision}, note)
    content = await asyncio.to_thread(text.write, changed)
    await asyncio.to_thread(_require_valid, run.engine.registry, file, content)
    changed_file = _ModuleFile(file.module, content, changed)
    after = next((each for each in _tabled_columns(changed) if each.place == column.place), None)
    if after is None:
        raise BadInput(f"{column.place} could not be found again under this name: edit the module text")
    try:
        replacement = await asyncio.to_thread(Replacement, file.path, file.content, content, waits=False)
        with replacement:
            async with run.writing() as write_run:
                setting = run.engine.registry.models["setting"]
                changes = _audit_changes(file, column, after, request)
                await record_writer.record_audit(write_run, _DECIDE, setting, None, changes)
            # A cancelled call must not give up the lock while the thread puts the new file in its place.
            await uncancellable(asyncio.ensure_future(asyncio.to_thread(replacement.commit)))
    except NotReplaced as error:
        raise TryAgain(f"{_DECIDE}: {error}: {_READ_AGAIN}, and decide again") from error
    except OSError as error:
        raise _unwritable(file.path, error) from error
    changed_files = [changed_file if each is file else each for each in files]
    return await asyncio.to_thread(_result, run, changed_files, after.place)


def _result(run: Run, files: Iterable[_ModuleFile], place: str) -> DecisionResult:
    data_map = _data_map(run, files)
    field = next(each for model in data_map.models for each in model.fields if each.field == place)
    is_in_effect = field.agents_see == field.after_restart
    return DecisionResult(
        field,
        data_map.undecided,
        data_map.decided,
        "now" if is_in_effect else "after_restart",
        None if is_in_effect else EFFECT,
    )


def _decision_request(body: Body) -> _DecisionRequest:
    refuse_unknown_keys(body, _DECISION_KEYS, _DECIDE)
    place, revision, confirmed = body.get("field"), body.get("revision"), body.get("confirmed", False)
    if not isinstance(place, str) or not isinstance(revision, str):
        raise BadInput("field and revision must be strings from setting.data_map")
    choice: Choice | None = next((each for each in _CHOICES if each == body.get("decision")), None)
    if choice is None:
        raise BadInput(f"decision must be one of {', '.join(_CHOICES)}")
    if not isinstance(confirmed, bool):
        raise BadInput("confirmed must be true or false")
    return _DecisionRequest(place, choice, _label_of(body, choice), _reason_of(body), revision, confirmed)


def _label_of(body: Body, choice: Choice) -> str | None:
    label = body.get("label")
    if label is None:
        return None
    if choice != "personal" or not isinstance(label, str) or not is_label(label):
        raise BadInput("label must be 1 to 20 capitals and digits, a capital first, and needs the decision personal")
    return label


def _reason_of(body: Body) -> str:
    reason = body.get("reason")
    if not isinstance(reason, str) or not reason.strip() or len(reason) > MAX_REASON_LENGTH:
        raise BadInput(f"reason must be a text of 1 to {MAX_REASON_LENGTH} characters, which others can read later")
    return reason.strip()


def _find(files: Iterable[_ModuleFile], place: str) -> tuple[_ModuleFile, MappedColumn]:
    for file in files:
        for column in _tabled_columns(file.text):
            if column.place == place:
                return file, column
    raise BadInput(f"no connected table has the field {place}: {_READ_AGAIN}")


def _require_possible(file: _ModuleFile, column: MappedColumn, request: _DecisionRequest) -> Decision:
    """Return the decision for the module text.

    Raises:
        BadInput: the column cannot be shown so, or agents would see more and this is not confirmed.
        TryAgain: the column has changed since it was read.
    """
    if request.revision != column.revision:
        raise TryAgain(f"{column.place} has changed in {file.path.name}: {_READ_AGAIN}, and decide again")
    if request.choice not in column.choices:
        possible = ", ".join(column.choices) or "none: edit the module text"
        raise BadInput(f"{column.place} cannot be {request.choice} (possible: {possible})")
    if _is_widened(column, request.choice) and not request.is_confirmed:
        what = "read the values" if request.choice == "clear" else "see tokens for the values"
        raise BadInput(
            f"agents would {what} of {column.place}, of which they see {column.shown} now: send confirmed: true if "
            "they may"
        )
    return _written_decision(column, request)


def _written_decision(column: MappedColumn, request: _DecisionRequest) -> Decision:
    """Return the decision as a change of the module text."""
    if request.choice == "personal":
        return TokenLabel(request.label or column.label or FREE_TEXT)
    return "hide" if request.choice == "hidden" else "clear"


def _is_widened(column: MappedColumn, choice: Choice) -> bool:
    """Return whether agents see more after the decision than the module text says now. Tokens show which values are
    equal and where they are empty, and agents can copy them."""
    sight = _declared_sight(column).see
    return sight == "nothing" if choice == "personal" else choice == "clear" and sight != "values"


def _audit_changes(
    file: _ModuleFile, before: MappedColumn, after: MappedColumn, request: _DecisionRequest
) -> dict[str, list[object]]:
    """Return the changes for the audit entry: the decision is the value of a setting with the name of the field."""
    value = {
        "agents_see": after.shown,
        "decision": request.choice,
        "widens": _is_widened(before, request.choice),
        "reason": request.reason,
        "file": str(file.path),
    }
    before_value = {"agents_see": before.shown, "state": before.state}
    return {
        "title": [None, before.place],
        "value": [msgspec.json.encode(before_value).decode(), msgspec.json.encode(value).decode()],
    }


def _unwritable(path: Path, error: OSError) -> BadInput | StorageFull:
    if is_disk_full(error):
        return StorageFull(f"the disk of {path} is full")
    reason = explain_permission_error(path, error, "written")
    return BadInput(
        f"{reason}: let this user write the file and its folder, or decide with `countersign connect review` as a user "
        "who may"
    )


async def _read_files(run: Run) -> list[_ModuleFile]:
    """Return the module texts of the running server, as their files are now.

    Raises:
        BadInput: a file cannot be read.
    """
    return await asyncio.to_thread(_read_all, run.engine.registry)


def _read_all(registry: Registry) -> list[_ModuleFile]:
    files: list[_ModuleFile] = []
    for module in (each for each in registry.modules if each.is_text):
        path = Path(module.source)
        try:
            content = text_file.read(path)
            files.append(_ModuleFile(module, content, text.read(content, str(path))))
        except OSError as error:
            raise BadInput(f"{explain_permission_error(path, error)}: restore the module text") from error
        except TextError as error:
            raise BadInput(f"{path}: {error}") from error
    return files


def _require_valid(registry: Registry, file: _ModuleFile, content: str) -> None:
    """Require that the server can start with the new module text.

    Raises:
        BadInput: a rule is violated.
    """
    try:
        changed = text.build(text.read(content), file.module.source)
        Registry(tuple(changed if each is file.module else each for each in registry.modules))
    except (DeclarationError, TextError) as error:
        raise BadInput(f"{error}. Nothing is written: edit the module text so that it also fits afterwards") from error


def _data_map(run: Run, files: Iterable[_ModuleFile]) -> DataMap:
    models = [model for file in files for model in _models(run, file)]
    fields = [field for model in models for field in model.fields]
    states = [field.state for field in fields]
    is_restart_needed = any(field.agents_see != field.after_restart for field in fields)
    return DataMap(models, states.count("undecided"), states.count("decided"), is_restart_needed)


def _models(run: Run, file: _ModuleFile) -> Iterator[MappedModel]:
    columns: dict[str, list[MappedColumn]] = {}
    for column in _tabled_columns(file.text):
        columns.setdefault(column.model, []).append(column)
    for model in file.text.models:
        name = review.model_name(model)
        table = dict(model.options).get("table")
        if isinstance(table, Call):
            running = run.engine.registry.models.get(name)
            fields = [_mapped_field(running, each) for each in columns.get(name, ())]
            known = {each.name for each in columns.get(name, ()) if _has_own_name(each)}
            fields += [] if running is None else list(_removed_fields(running, known))
            # An administrator sees every model that is not suspended, unless its policies need a value of the person.
            is_suspended = running is not None and name not in {*run.caller.view.models, *run.caller.withheld}
            yield MappedModel(name, str(next(iter(table.arguments), "")), str(file.path), is_suspended, fields)


def _tabled_columns(module: ModuleText) -> list[MappedColumn]:
    """Return the columns of the models with a table of an existing database."""
    return [each for each in review.mapped_columns(module) if each.written is not None and each.written[1] is not None]


def _has_own_name(column: MappedColumn) -> bool:
    """Return whether the field of the column is the only one with its name."""
    return column.field is not None and column.name == column.field.name


def _mapped_field(running: Declared | None, column: MappedColumn) -> MappedField:
    note = column.note
    return MappedField(
        field=column.place,
        name=column.name,
        kind=None if column.field is None else column.field.call.word,
        agents_see=_running_sight(running, column.name) if _has_own_name(column) else AgentSight("nothing"),
        after_restart=_declared_sight(column),
        state=column.state,
        why=note.reason or column.reason or None,
        decided_by=note.by or None,
        decided_on=note.day or None,
        choices=column.choices,
        revision=column.revision,
    )


def _running_sight(model: Declared | None, name: str) -> AgentSight:
    field = None if model is None else model.fields.get(name)
    if field is None:
        return AgentSight("nothing")
    return AgentSight("tokens", field.personal) if field.personal else AgentSight("values")


def _declared_sight(column: MappedColumn) -> AgentSight:
    if column.is_left_out:
        return AgentSight("nothing")
    return AgentSight("tokens", column.label) if column.label else AgentSight("values")


def _removed_fields(model: Declared, known: Collection[str]) -> Iterator[MappedField]:
    """Yield the fields that are no longer in the module text. Agents see them until the server starts again."""
    for name in (each for each in model.fields if each not in known):
        sight = _running_sight(model, name)
        nothing = AgentSight("nothing")
        yield MappedField(
            f"{model.name}.{name}", name, None, sight, nothing, "decided", None, None, None, (), ""
        )

