"""The rules of a model: conditions that a record must meet whenever one of the fields in them is written."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from countersign.declare import Declared, FieldOf, Ref, Where
from countersign.declare.fields.field import Stored
from countersign.records.access.view import ModelView
from countersign.records.commands import condition_text, guard, promise, select
from countersign.records.commands.given import Given
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Run
from countersign.records.commands.stored import record_of

READING = ("get", "list", "search", "export")


async def require(
    run: Run,
    model: Declared,
    values: Mapping[str, Stored],
    written: Collection[str],
    given: Mapping[str, Given],
    command: str,
) -> None:
    """Insist that the record, of which these fields are written, meets the rules that name one of them.

    Raises:
        BadInput: it does not. The rule is named to those who read its fields, or sent them.
    """
    await _require(run, model, values, named_by(model, written), _sent(given), command)


async def require_all(
    run: Run,
    model: Declared,
    values: Mapping[str, Stored],
    rules: Collection[Where],
    given: Mapping[str, Given],
    command: str,
) -> None:
    """Insist that the record, of which these fields are given, meets the rules of an action.

    Raises:
        BadInput: it does not. The rule is named to those who read its fields, or sent them.
    """
    await _require(run, model, values, rules, _sent(given), command)


def _sent(given: Mapping[str, Given]) -> list[str]:
    """The fields that the caller knows of: what a default, an effect or another command sets is not spoken of."""
    return [name for name, each in given.items() if not each.is_default]


async def require_as_seen(
    run: Run,
    view: ModelView,
    values: Mapping[str, Stored],
    given: Collection[str],
    command: str,
    more: Collection[Where] = (),
) -> None:
    """As `require`, for those rules alone, and those of an action (`more`), of which the caller sees every field,
    before the command is proposed.

    Raises:
        BadInput: the record would not meet one.
    """
    named = (*named_by(view.model, given), *more)
    rules = [each for each in named if is_readable(run, view, each, given)]
    await _require(run, view.model, values, rules, given, command)


def named_by(model: Declared, written: Collection[str]) -> list[Where]:
    """The rules that name one of the fields."""
    return [each for each in model.rules if _fields(each) & set(written)]


def is_readable(run: Run, view: ModelView, rule: Where, given: Collection[str]) -> bool:
    """Whether a caller who gives these fields can see by itself if the rule is met."""
    return all(_knows(run, view, path, given) for path in _paths(rule))


def _knows(run: Run, view: ModelView, path: str, given: Collection[str]) -> bool:
    name, dot, rest = path.partition(".")
    is_known = name in given or view.knows(name)
    if not dot or not is_known:
        return is_known
    ref = view.model.fields[name]
    above = run.caller.view.models.get(ref.target) if isinstance(ref, Ref) else None
    # A ref that is given leads to a record that exists for the caller: another one would be refused.
    return above is not None and above.knows(rest) and (name in given or above.reads_any_by(*READING))


async def _require(
    run: Run,
    model: Declared,
    values: Mapping[str, Stored],
    rules: Collection[Where],
    known: Collection[str],
    command: str,
) -> None:
    """`known` are the fields that the caller knows of, beside those that it reads."""
    view = run.caller.view.models.get(model.name)
    parents: dict[str, tuple[Declared, Mapping[str, Stored]] | None] = {}
    for rule in rules:
        for ref in refs_of(rule):
            if ref not in parents:
                parents[ref] = await _parent(run, model, ref, values.get(ref))
        if not _is_met(model, values, rule, parents):
            is_seen = view is not None and is_readable(run, view, rule, known)
            said = condition_text.refusal(rule) if is_seen else ""
            raise BadInput(f"{command} is refused{said}")


async def _parent(
    run: Run, model: Declared, name: str, record_id: Stored
) -> tuple[Declared, Mapping[str, Stored]] | None:
    """The record that the ref leads to; None where it is empty, or an earlier step of a plan is going to make it."""
    ref = model.fields[name]
    if not isinstance(ref, Ref) or not isinstance(record_id, str) or promise.step_of(record_id) is not None:
        return None
    parent = run.engine.registry.models[ref.target]
    # Locked in the database too, so that it still meets the rule when this is written.
    statement = select.existing(parent, None, record_id, run.engine.dialect)
    row = await run.transaction.fetch_one(statement.text, *statement.values)
    return None if row is None else (parent, record_of(parent, row).values)


def _is_met(
    model: Declared,
    values: Mapping[str, Stored],
    rule: Where,
    parents: Mapping[str, tuple[Declared, Mapping[str, Stored]] | None],
) -> bool:
    found = _owner(model, values, rule.field, parents)
    if found is None:
        return True
    owner, known, name = found
    condition = replace(rule, field=name)
    if isinstance(rule.value, FieldOf):
        other = _owner(model, values, rule.value.name, parents)
        value = None if other is None else other[1].get(other[2])
        if other is None or value is None or known.get(name) is None:
            return True
        condition = replace(condition, value=other[0].fields[other[2]].show(value))
    return guard.holds(owner, known, condition)


def _owner(
    model: Declared,
    values: Mapping[str, Stored],
    path: str,
    parents: Mapping[str, tuple[Declared, Mapping[str, Stored]] | None],
) -> tuple[Declared, Mapping[str, Stored], str] | None:
    """The model, the values and the name there of a field that a rule names; None where there is no such record."""
    name, dot, rest = path.partition(".")
    if not dot:
        return model, values, name
    parent = parents.get(name)
    return None if parent is None else (*parent, rest)


def _paths(rule: Where) -> Iterator[str]:
    yield rule.field
    if isinstance(rule.value, FieldOf):
        yield rule.value.name


def _fields(rule: Where) -> set[str]:
    """The model's own fields in the rule, refs included."""
    return {path.partition(".")[0] for path in _paths(rule)}


def refs_of(rule: Where) -> set[str]:
    """The refs to other records whose fields the rule names."""
    return {path.partition(".")[0] for path in _paths(rule) if "." in path}
