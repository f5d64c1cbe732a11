"""Rules about workflows and their actions. An action is declared as a `Move`; in this file, `move` and `action` mean
the same. A workflow must control a select field, and it must be possible to run every action."""

from collections.abc import Iterator

from countersign.declare.condition import TODAY
from countersign.declare.errors import BadValue
from countersign.declare.fields.field import Field
from countersign.declare.fields.kinds import Date, Ref, Select
from countersign.declare.model import Declared
from countersign.declare.rules.computed_fields import refs_to
from countersign.declare.rules.conditions import condition_error, rule_error
from countersign.declare.rules.declarations import Declarations, member_error, model_error
from countersign.declare.workflow import Move, Workflow


def one_workflow(declarations: Declarations) -> Iterator[str]:
    """Require that a model has at most one workflow."""
    for module in declarations.modules:
        for model_class in module.models:
            if sum(isinstance(value, Workflow) for value in vars(model_class).values()) > 1:
                yield model_error(model_class.declared, "it has two workflows: make them one, over one select field")


def workflow_field_is_a_select(declarations: Declarations) -> Iterator[str]:
    """Require that a workflow controls a select field and that the field starts at its first option."""
    for model in declarations.models.values():
        if model.workflow is None:
            continue
        field = model.fields.get(model.workflow.field)
        if not isinstance(field, Select):
            text = "the field of a workflow must be a Select of the model: correct the field's name in the workflow"
            yield member_error(model, model.workflow.field, text)
        elif field.options and field.default not in (None, field.options[0]):
            text = f"a workflow starts at the first option, {field.options[0]}: take the default out"
            yield member_error(model, field.name, text)


def moves_between_options(declarations: Declarations) -> Iterator[str]:
    """Require that the source states and the target state of every action exist."""
    for model, field, move in _moves(declarations):
        if not move.sources:
            text = 'it starts from no state, so that it never runs: name some, as in Move("new", to="done")'
            yield member_error(model, move.name, text)
        for state in (*move.sources, *(() if move.to is None else (move.to,))):
            if state not in field.options:
                known = ", ".join(field.options)
                yield member_error(model, move.name, f"{state!r} is not an option of {field.name}: use one of {known}")


def inputs_settable(declarations: Declarations) -> Iterator[str]:
    """Require that the inputs of an action are fields that callers may set, and that the values for omitted inputs are
    valid."""
    for model, field, move in _moves(declarations):
        for name in move.accepted_fields:
            text = _input_error(model, field, name, may_be_readonly=name in move.optional)
            text = text or _default_error(model.fields[name], move.optional.get(name))
            if text:
                yield member_error(model, move.name, text)


def _input_error(model: Declared, state_field: Select, name: str, *, may_be_readonly: bool) -> str | None:
    if name not in model.fields:
        return f"its input {name!r} is not a field of {model.name}: correct the name, or declare the field"
    if name == state_field.name:
        return f"its input {name!r} is the state, which the action itself sets: take it out"
    if model.fields[name].readonly and not (may_be_readonly and _may_be_empty(model.fields[name])):
        return f"its input {name!r} is readonly, so it can never be given: take it out, or let an effect set it"
    return None


def guards_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that every guard of an action is a valid condition on the action's record."""
    for model, _, move in _moves(declarations):
        for condition in move.guards:
            text = condition_error(model, condition, is_row_rule=False)
            if text:
                yield member_error(model, move.name, text)


def action_effects_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that fields in `clears` may be empty, and that models in `needs_records` refer to the action's model."""
    for model, field, move in _moves(declarations):
        for name in move.clears:
            if name == field.name or not _may_be_empty(model.fields.get(name)):
                text = f"it clears {name!r}: name a field of {model.name} that may be empty and is not computed"
                yield member_error(model, move.name, text)
        for name in move.needs_records:
            if name not in declarations.models or len(refs_to(declarations.models[name], model)) != 1:
                text = f"it needs records of {name!r}: name a model with exactly one ref to {model.name}"
                yield member_error(model, move.name, text)


def _default_error(field: Field, value: object) -> str | None:
    """Return the error text if the value that an omitted optional field gets is invalid, or None."""
    try:
        if value is not None and not (value is TODAY and isinstance(field, Date)):
            field.read(value)
    except BadValue as error:
        return f"the value for its optional {field.name!r} {error}: give a value that fits the field, TODAY or None"
    return None


def action_rules_are_valid(declarations: Declarations) -> Iterator[str]:
    """Require that the rules of an action are valid, by the same check as for the rules of a model."""
    for model, _, move in _moves(declarations):
        for rule in move.rules:
            text = rule_error(declarations, model, rule)
            if text:
                yield member_error(model, move.name, text)


def reads_are_related_models(declarations: Declarations) -> Iterator[str]:
    """Require that each model named in `reads` is the target of a ref of the model, or has a ref to such a target that
    `reads` also names."""
    all_reads = [(model, "reads", model.reads) for model in declarations.models.values()]
    all_reads += [(model, move.name, move.reads) for model, _, move in _moves(declarations)]
    for model, declaration_name, reads in all_reads:
        for name in reads:
            if not _is_readable(declarations, model, name, reads):
                text = f"it reads {name!r}: name the target of a ref of {model.name}, or a model with a ref to a target"
                yield member_error(model, declaration_name, text)


def _is_readable(declarations: Declarations, model: Declared, name: str, reads: tuple[str, ...]) -> bool:
    targets = {field.target for field in model.fields.values() if isinstance(field, Ref)} & set(reads)
    if name in targets:
        return True
    other = declarations.models.get(name)
    return other is not None and any(refs_to(other, declarations.models[target]) for target in targets)


def _may_be_empty(field: Field | None) -> bool:
    return field is not None and not (field.required or field.computed or field.sum_of)


def _moves(declarations: Declarations) -> Iterator[tuple[Declared, Select, Move]]:
    """Yield every action with its model and the select field of the workflow. Skip a workflow without a select field,
    which `workflow_field_is_a_select` reports."""
    for model in declarations.models.values():
        if model.workflow is None:
            continue
        field = model.fields.get(model.workflow.field)
        if isinstance(field, Select):
            yield from ((model, field, move) for move in model.workflow.moves.values())
