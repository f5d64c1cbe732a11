"""Every rule in its order; what breaks one is told at start-up with its remedies, all of a stage at once."""

from collections.abc import Iterable, Mapping

from countersign.declare.errors import DeclarationError
from countersign.declare.fields.field import Field
from countersign.declare.model import Declared
from countersign.declare.module import Module
from countersign.declare.rules import (
    computed,
    conditions,
    fields,
    grants,
    models,
    modules,
    names,
    personal,
    refs,
    workflows,
)
from countersign.declare.rules.whole import Rule, Whole

STAGES: tuple[tuple[Rule, ...], ...] = (
    (modules.modules_named, modules.needs_are_there, modules.needs_run_one_way),
    (
        names.models_named,
        names.fields_named,
        names.former_names_free,
        names.actions_named,
        modules.settings_named,
        fields.fields_present,
        workflows.one_workflow,
    ),
    (
        fields.options_are_known,
        models.options_are_known,
        fields.kinds_fit_module,
        fields.unique_values_are_exact,
        fields.money_named,
        fields.ranges_open,
        fields.options_plain,
        fields.long_text_not_indexed,
        fields.defaults_fit,
        fields.required_can_be_met,
        personal.personal_labelled,
        personal.linked_is_personal,
        personal.restricted_to_roles,
        refs.refs_lead_somewhere,
        refs.refs_let_go,
        computed.sources_are_fields,
        computed.totals_add_up,
        computed.declassified_is_made,
    ),
    (
        computed.computed_one_way,
        computed.made_as_secret_as_sources,
        computed.totals_make_plain_fields,
        models.commands_are_known,
        models.approvals_are_of_commands,
        models.shown_as_a_field,
        models.locked_with_a_ref,
        conditions.locks_fit,
        conditions.approvals_fit,
        conditions.rules_fit,
        conditions.unique_with_a_ref,
        refs.refs_fill_fields,
        workflows.governed_is_a_select,
        workflows.moves_between_options,
        workflows.inputs_can_be_given,
        workflows.guards_fit,
        workflows.consequences_fit,
        workflows.reads_fit,
        workflows.rules_of_moves_fit,
        grants.roles_named,
        grants.grants_speak_of_models,
        grants.grants_fit,
    ),
)
"""The rules; those of a later stage may rely on all earlier ones."""


def models_of(modules: Iterable[Module]) -> dict[str, Declared]:
    """The models by name.

    Raises:
        DeclarationError: two have the same name.
    """
    found: dict[str, Declared] = {}
    for module in modules:
        for model in (each.declared for each in module.models):
            if model.name in found:
                other = found[model.name].source
                text = f"{model.source}: {model.name}: this model is also declared in {other}: rename one"
                raise DeclarationError(text)
            found[model.name] = model
    return found


def sum_source(models: Mapping[str, Declared], parent: Declared, field: Field) -> tuple[Declared, str, str]:
    """Of a total "invoice_line.amount_minor": the child model, its ref to the parent, its field.

    Raises:
        DeclarationError: there is no such model or field, or not exactly one ref to the parent.
    """
    text = computed.wrong_total(models, parent, field)
    if text:
        raise DeclarationError(f"{parent.source}: {parent.name}.{field.name}: {text}")
    child_name, _, of = (field.sum_of or "").partition(".")
    child = models[child_name]
    return child, computed.refs_to(child, parent)[0], of


def check(modules: tuple[Module, ...], models: Mapping[str, Declared]) -> None:
    """Check every rule.

    Raises:
        DeclarationError: some are broken; the text has a line for each place.
    """
    whole = Whole(modules, models)
    for stage in STAGES:
        complaints = [text for rule in stage for text in rule(whole)]
        if complaints:
            raise DeclarationError("\n".join(complaints))
