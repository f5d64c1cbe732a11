"""The registry of declared models. Its constructor checks all rules, in stages, and lists the violations of the first
stage that has violations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from countersign.declare.errors import DeclarationError
from countersign.declare.fields.field import LITERAL, Field
from countersign.declare.fields.kinds import BUILTIN_KINDS, Ref
from countersign.declare.fields.text import LongText
from countersign.declare.model import Declared
from countersign.declare.module import Module, Role, Setting
from countersign.declare.rules import (
    computed_fields,
    conditions,
    fields,
    grants,
    kinds,
    models,
    modules,
    package_code,
    presentations,
    tables,
    workflows,
)
from countersign.declare.rules.declarations import Declarations, Rule
from countersign.declare.rules.modules import all_needs
from countersign.declare.rules.package_code import ModelHook

STAGES: tuple[tuple[Rule, ...], ...] = (
    (modules.modules_named, modules.needs_enabled, modules.needs_acyclic, kinds.kinds_are_fields),
    (kinds.kinds_named, kinds.kinds_fit_columns, kinds.kinds_are_registered),
    (
        modules.models_named,
        modules.fields_named,
        modules.former_names_free,
        modules.actions_named,
        modules.settings_named,
        modules.sessions_are_valid,
        modules.session_roles_are_valid,
        fields.fields_present,
        workflows.one_workflow,
    ),
    (
        fields.options_are_known,
        models.options_are_known,
        fields.kinds_fit_module,
        fields.unique_values_are_exact,
        fields.money_named,
        fields.ranges_not_empty,
        fields.options_plain_words,
        fields.long_text_not_indexed,
        fields.defaults_are_valid,
        fields.required_can_be_met,
        fields.personal_labelled,
        fields.linked_is_personal,
        fields.restricted_to_roles,
        fields.ref_targets_exist,
        fields.on_delete_possible,
        tables.tables_are_named,
        tables.tables_have_their_commands,
        tables.workflows_over_columns_are_valid,
        tables.columns_named_validly,
        tables.columns_are_valid,
        computed_fields.sources_are_fields,
        computed_fields.total_sources_valid,
        computed_fields.declassified_fields_derived,
        package_code.checks_are_valid,
        package_code.hooks_are_valid,
    ),
    (
        computed_fields.computed_fields_acyclic,
        computed_fields.derived_fields_as_secret_as_sources,
        computed_fields.totals_neither_personal_nor_unique,
        models.commands_are_known,
        models.needs_approval_names_commands,
        models.shown_as_names_a_field,
        models.locked_with_names_a_ref,
        conditions.locks_are_valid,
        conditions.approvals_are_valid,
        conditions.rules_are_valid,
        conditions.unique_with_names_a_ref,
        fields.refs_fill_fields,
        workflows.workflow_field_is_a_select,
        workflows.moves_between_options,
        workflows.inputs_settable,
        workflows.guards_are_valid,
        workflows.action_effects_are_valid,
        workflows.reads_are_related_models,
        workflows.action_rules_are_valid,
        presentations.titles_are_fields,
        presentations.measures_are_valid,
        presentations.views_are_valid,
        presentations.tones_are_known,
        presentations.risks_are_valid,
        tables.tables_refer_to_tables,
        tables.written_tables_have_one_model,
        grants.roles_named,
        grants.granted_models_exist,
        grants.grants_are_valid,
    ),
)
"""The rules, in stages. The rules of a stage rely on the rules of all earlier stages."""


def models_of(modules: Iterable[Module]) -> dict[str, Declared]:
    """Map the name of each model to the model.

    Raises:
        DeclarationError: two models have the same name.
    """
    models: dict[str, Declared] = {}
    for module in modules:
        for model in (model.declared for model in module.models):
            if model.name in models:
                other = models[model.name].source
                text = f"{model.source}: {model.name}: this model is also declared in {other}: rename one"
                raise DeclarationError(text)
            models[model.name] = model
    return models


def sum_source(models: Mapping[str, Declared], parent: Declared, field: Field) -> tuple[Declared, str, str]:
    """Return the source of a total (`sum_of`, such as "invoice_line.amount_minor"): the child model, the name of its
    ref to the parent, and the name of the field that is summed.

    Raises:
        DeclarationError: the child model or its field does not exist, or the child model does not have exactly one ref
            to the parent.
    """
    text = computed_fields.total_error(models, parent, field)
    if text:
        raise DeclarationError(f"{parent.source}: {parent.name}.{field.name}: {text}")
    child_name, _, of = (field.sum_of or "").partition(".")
    child = models[child_name]
    return child, computed_fields.refs_to(child, parent)[0], of


def check(modules: tuple[Module, ...], models: Mapping[str, Declared]) -> None:
    """Check the rules stage by stage.

    Raises:
        DeclarationError: a rule is violated. The text has one line for each violation.
    """
    declarations = Declarations(modules, models)
    for stage in STAGES:
        errors = [text for rule in stage for text in rule(declarations)]
        if errors:
            raise DeclarationError("\n".join(errors))


@dataclass(frozen=True, slots=True)
class Referrer:
    """A ref field and the model that declares it."""

    model: Declared
    ref: Ref


@dataclass(frozen=True, slots=True)
class Total:
    """The field `field` of the model `parent`. It contains the sum of the field `of` over the records of the model
    `child` whose ref `by` refers to its record."""

    parent: Declared
    field: str
    child: Declared
    by: str
    of: str


class Registry:
    """The models, roles and relations of the given modules."""

    def __init__(self, modules: Iterable[Module]) -> None:
        """Combine the modules and check them.

        Raises:
            DeclarationError: `check` finds a violation. The text names the file, the model, the field and the remedy.
        """
        self.modules = tuple(modules)
        self.models: Mapping[str, Declared] = models_of(self.modules)
        self.roles: Mapping[str, tuple[Role, ...]] = _by_name(role for module in self.modules for role in module.roles)
        check(self.modules, self.models)

    @cached_property
    def module_of(self) -> Mapping[str, Module]:
        """Map the name of each model to the module that declares it."""
        return {model.declared.name: module for module in self.modules for model in module.models}

    @cached_property
    def hooks(self) -> Mapping[str, tuple[ModelHook, ...]]:
        """Map the name of each model to its hooks, in the order in which they run: those of a module before those of
        the modules that need it, and those of one module by name."""
        hooks: dict[str, list[ModelHook]] = {name: [] for name in self.models}
        for module in sorted(self.modules, key=lambda each: (len(all_needs(self.modules, each)), each.name)):
            for hook in sorted(package_code.hooks_of(module), key=lambda each: (each.name, each.model)):
                hooks[hook.model].append(hook)
        return {name: tuple(value) for name, value in hooks.items()}

    @cached_property
    def kinds(self) -> Mapping[str, type[Field]]:
        """Map the name of each kind of field to the kind: first the built-in kinds, then the kinds that modules
        register."""
        registered = (kind for module in self.modules for kind in module.kinds)
        return {kind.kind: kind for kind in (*BUILTIN_KINDS, *registered)}

    @cached_property
    def settings(self) -> Mapping[str, Setting]:
        """Map the name of each setting that a module declares to the setting."""
        return {setting.name: setting for module in self.modules for setting in module.settings}

    @cached_property
    def session(self) -> Mapping[str, str]:
        """Map each setting that policies of an existing database read to the field of the person that it is taken
        from. The setting `role` of PostgreSQL is the role of the database."""
        settings = {name: value for module in self.modules for name, value in module.session.items()}
        return {**settings, "role": modules.SESSION_ROLE} if self.session_roles else settings

    @cached_property
    def session_roles(self) -> Mapping[str, str]:
        """Map roles of people to the roles of an existing database with which its tables are read and written."""
        return {name: role for module in self.modules for name, role in module.session_roles.items()}

    @cached_property
    def labels(self) -> frozenset[str]:
        """Return the labels that placeholder tokens may have."""
        labels = {field.personal for model in self.models.values() for field in model.fields.values()}
        return frozenset({label for label in labels if label}) | {LITERAL}

    @cached_property
    def long_labels(self) -> frozenset[str]:
        """Return the labels of long text fields."""
        fields = (field for model in self.models.values() for field in model.fields.values())
        return frozenset(field.personal for field in fields if field.personal and isinstance(field, LongText))

    @cached_property
    def referrers(self) -> Mapping[str, tuple[Referrer, ...]]:
        """Map the name of each model to the ref fields that refer to the model."""
        referrers: dict[str, list[Referrer]] = {name: [] for name in self.models}
        for model in self.models.values():
            for field in model.fields.values():
                if isinstance(field, Ref):
                    referrers[field.target].append(Referrer(model, field))
        return {name: tuple(value) for name, value in referrers.items()}

    @cached_property
    def totals(self) -> Mapping[str, tuple[Total, ...]]:
        """Map the name of each child model to the totals that sum a field of that model."""
        totals: dict[str, list[Total]] = {name: [] for name in self.models}
        for parent in self.models.values():
            for field in parent.fields.values():
                if field.sum_of is not None:
                    child, by, of = sum_source(self.models, parent, field)
                    totals[child.name].append(Total(parent, field.name, child, by, of))
        return {name: tuple(value) for name, value in totals.items()}

    def is_part(self, model: Declared, ref: Ref) -> bool:
        """Return whether a record of the model is a part of the record that this ref refers to.

        A part is deleted or locked together with the other record, or the other record has a total that includes the
        part.
        """
        counts = any(total.by == ref.name for total in self.totals[model.name])
        return ref.on_delete == "cascade" or model.locked_with == ref.name or counts


def _by_name(roles: Iterable[Role]) -> dict[str, tuple[Role, ...]]:
    roles_by_name: dict[str, tuple[Role, ...]] = {}
    for role in roles:
        roles_by_name[role.name] = (*roles_by_name.get(role.name, ()), role)
    return roles_by_name
