"""Finds the commands of a model by name, and describes, checks and runs them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from countersign.declare import TODAY, Declared, FieldOf, Move, Where
from countersign.declare.registry import Registry
from countersign.records.access.view import ModelView
from countersign.records.base_models import PAGE_MODELS
from countersign.records.commands import crud, list_search, referring_records, series, update, workflow
from countersign.records.commands.errors import BadInput
from countersign.records.commands.filters import clause, clauses, joined
from countersign.records.commands.prepared_command import PreparedCommand
from countersign.records.commands.run import Body, Run

GENERATED: Mapping[str, str] = {
    "get": "Reads one {label} by its id.",
    "list": "Lists {plural}. Takes a filter, an order, a limit and an offset.",
    "search": "Lists {plural} like list, together with the total number of matches.",
    "create": "Creates one {label}.",
    "update": "Changes fields of one {label}.",
    "delete": "Deletes one {label}. Refused while another record refers to it.",
    "export": "Exports the matching {plural} as CSV or NDJSON text.",
    "import": "Creates {plural} from CSV text. With dry_run it only checks the text.",
    "history": "Lists the changes of one {label} that the caller may see.",
    "count_by": "Counts {plural} by the value of a field.",
    "related": "Lists the records that refer to one {label}: for each reference the count and the first few.",
    "series": "Counts {plural} over time, or adds up a number of them: by day, week, month, quarter or year.",
}
APPROVAL = "An agent can only propose it: the call returns a plan_id, and a person approves the plan."
APPROVAL_OF_FIELDS = (
    "An agent can only propose changes of {fields}: such a call returns a plan_id, and a person approves the plan."
)


def describe(
    view: ModelView,
    name: str,
    own_descriptions: Mapping[str, str],
    *,
    needs_approval: bool,
    proposed_fields: Sequence[str] = (),
) -> str:
    """Return the description of one command of the model for a caller with this view. `own_descriptions` maps the
    built-in commands of the model to their descriptions. `proposed_fields` names the fields that an agent can only
    propose to change.

    The description does not name hidden fields.

    Raises:
        LookupError: the model has no such command.
    """
    model = view.model
    if name in own_descriptions:
        text = own_descriptions[name]
    elif name in GENERATED:
        text = GENERATED[name].format(label=model.label.lower(), plural=model.plural.lower())
    else:
        move = None if model.workflow is None else model.workflow.moves.get(name)
        if move is None:
            raise LookupError(f"{model.name} has no command {name}")
        text = _describe_action(view, move)
    if name == "update" and proposed_fields and not needs_approval:
        fields = joined([_with_condition(view, proposed_field) for proposed_field in proposed_fields], "and")
        return f"{text} {APPROVAL_OF_FIELDS.format(fields=fields)}"
    return f"{text} {APPROVAL}" if needs_approval else text


def _with_condition(view: ModelView, name: str) -> str:
    condition = view.model.fields[name].needs_approval
    if isinstance(condition, Where) and condition.field in view.fields:
        return f"{name} where {clause(condition)}"
    return name


def _describe_action(view: ModelView, move: Move) -> str:
    effect = move.help or f"{move.label}: changes one {view.model.label.lower()}"
    sentences = [effect if effect.endswith(".") else f"{effect}.", *_states(view, move)]
    if required_state := _required(view, move):
        sentences.append(f"Requires that {clauses(required_state)}.")
    if inputs := [input_ for input_ in move.inputs if input_ in view.fields]:
        sentences.append(f"Requires {joined(inputs, 'and')}, given as input or set before.")
    if optional := [_with_default(move, name) for name in move.optional if name in view.fields]:
        sentences.append(f"Also takes {joined(optional, 'and')}.")
    return " ".join(sentences)


def _required(view: ModelView, move: Move) -> list[Where]:
    """Return the guards and rules that the description lists. Rules that compare fields are left out, because they may
    name hidden fields of another record."""
    literal_rules = [rule for rule in move.rules if not isinstance(rule.value, FieldOf)]
    return [condition for condition in (*move.guards, *literal_rules) if condition.field in view.fields]


def _with_default(move: Move, name: str) -> str:
    value = move.optional[name]
    return f"{name} ({'today' if value is TODAY else value} if left out)" if value is not None else name


def _states(view: ModelView, move: Move) -> list[str]:
    workflow = view.model.workflow
    if workflow is None or workflow.field not in view.fields:
        return []
    return [f"From {joined(move.sources, 'or')}{f' to {move.to}' if move.to else ''}."]


CommandFunction = Callable[[Run, str, Body], Awaitable[object]]
"""A function that runs a reading or built-in command and returns the value of the response."""

READING: Mapping[str, CommandFunction] = {
    "get": crud.get,
    "list": list_search.records,
    "search": list_search.search,
    "count_by": list_search.count_by,
    "related": referring_records.related,
    "series": series.series,
}

READ_ONLY = frozenset(
    {
        *("get", "list", "search", "count_by", "export", "history", "related", "series", "watch", "verify"),
        *("home", "recent", "find", "calls", "data_map", "people"),
    }
)
"""The names of all read-only commands, including built-in ones."""

PAGE_COMMANDS = frozenset(
    {"related", "series", "home", "recent", "find", "calls", "deactivate", "data_map", "decide", "people"}
)
"""The commands that only pages need. They are not MCP tools: each would add a tool for every model, and agents can use
search and count_by."""


def is_tool(model: str, name: str) -> bool:
    """Return whether the command is an MCP tool."""
    return name not in PAGE_COMMANDS and model not in PAGE_MODELS


def names_of(registry: Registry, own_commands: Mapping[str, Mapping[str, str]]) -> dict[str, frozenset[str]]:
    """Map each model to the names of all its commands: generated commands, workflow actions, and built-in commands
    (`own_commands`)."""
    return {
        name: frozenset((*model.commands, *moves(model), *own_commands.get(name, {})))
        for name, model in registry.models.items()
    }


def moves(model: Declared) -> tuple[str, ...]:
    """Return the names of the model's workflow actions."""
    return () if model.workflow is None else tuple(model.workflow.moves)


def is_writing(model: Declared, name: str) -> bool:
    """Return whether the command is prepared before it runs, so that an agent's call of it can become a plan."""
    return name in ("create", "update", "delete") or name in moves(model)


def writes(model: Declared, name: str) -> bool:
    """Return whether the command may change data. Such a command accepts an Idempotency-Key, except `setting.decide`:
    it writes a file, which the transaction of the key does not cover. A repeated call is refused by its revision."""
    return is_writing(model, name) or name not in {*READ_ONLY, "decide"}


async def check(run: Run, view: ModelView, name: str, body: Body) -> PreparedCommand:
    """Read the input of a writing command and check whether the command is allowed.

    Raises:
        BadInput: the command is not allowed; the detail gives the reason.
    """
    if name == "create":
        return await crud.check_create(run, view, body)
    if name == "update":
        return await update.check_update(run, view, body)
    if name == "delete":
        return await crud.check_delete(run, view, body)
    return await workflow.check_action(run, view, name, body)


async def apply(run: Run, prepared_command: PreparedCommand) -> str:
    """Run the prepared command and return the id of its record.

    Raises:
        BadInput: the command cannot be run.
    """
    if prepared_command.command == "create":
        return await crud.apply_create(run, prepared_command)
    if prepared_command.command == "update":
        return await update.apply_update(run, prepared_command)
    if prepared_command.command == "delete":
        return await crud.apply_delete(run, prepared_command)
    return await workflow.apply_action(run, prepared_command)


async def finish(run: Run) -> None:
    """Check what connected databases check last, after all commands of a transaction.

    Raises:
        BadInput: a deferred constraint is violated.
    """
    for store in set(run.engine.adopted.values()):
        await store.check_deferred(run)


async def result(run: Run, prepared_command: PreparedCommand, record_id: str) -> object:
    """Return the response of a writing command: the record as the caller sees it after the change, or only its id if
    the record is deleted or the caller no longer sees it."""
    if prepared_command.command == "delete":
        return {"id": record_id}
    if prepared_command.model not in run.caller.view.models:
        return {"id": record_id}
    try:
        return await crud.read_record(run, prepared_command.model, record_id)
    except BadInput:
        # The caller no longer sees the record after the change.
        return {"id": record_id}
