"""Cases of declarations that break a rule: workflows, locks, options of models, views, measures, settings and grants.

Each case names the rule, the place that the error must name, and a part of the remedy in the error.
"""

from typing import Any, cast

from countersign.declare import (
    CALLER,
    NEXT_QUARTER,
    TODAY,
    Date,
    Field,
    FieldOf,
    Grant,
    ListView,
    Measure,
    Model,
    Module,
    Move,
    Number,
    Option,
    Ref,
    Risk,
    Role,
    Select,
    Setting,
    Table,
    Text,
    Where,
    Work,
    Workflow,
    check,
    on,
    where,
)
from countersign.declare.module import Names
from countersign.declare.package_code import Check, Hook
from countersign.declare.rules import conditions, grants, models, package_code, presentations, workflows
from countersign.declare.rules import modules as module_rules
from tests.declare.sample_modules import BrokenModules, model, models_case, nursery


def plant(*guards: Where, **options: object) -> type[Model]:
    """Return the model `plant` with these guards of its action and these options of its class. Everything else is
    valid."""
    attributes: dict[str, Field | Workflow] = {
        "title": Text(),
        "height": Number(),
        "sown": Date(readonly=True),
        "gardener": Ref("user"),
        "state": Select("seed", "grown"),
        "workflow": Workflow("state", grow=Move("seed", to="grown", guards=guards)),
    }
    return model("Plant", attributes, **options)


def plant_with_action(move: Move) -> type[Model]:
    """Return the model `plant` with this action, which is called `grow`. Everything else is valid."""
    attributes: dict[str, Field | Workflow] = {
        "title": Text(),
        "sown": Date(readonly=True),
        "state": Select("seed", "grown"),
        "workflow": Workflow("state", grow=move),
    }
    return model("Plant", attributes)


def lock_case(remedy: str, *lock_conditions: Where) -> BrokenModules:
    """Return a case: the option `locked` has an invalid condition."""
    return models_case(conditions.locks_are_valid, "plant.locked", remedy, plant(locked=lock_conditions))


def rule_case(place: str, remedy: str, **options: object) -> BrokenModules:
    """Return a case: the option `rules` or `locked_while` is invalid."""
    rule = conditions.rules_are_valid if place == "rules" else conditions.locks_are_valid
    return models_case(rule, f"plant.{place}", remedy, plant(**options))


def setting_case(remedy: str, wrong_setting: Setting) -> BrokenModules:
    """Return a case: a module has an invalid setting."""
    return BrokenModules(
        module_rules.settings_named, (nursery(plant(), settings=(wrong_setting,)),), "module nursery", remedy
    )


def session_case(remedy: str, session: dict[str, str]) -> BrokenModules:
    """Return a case: a module has an invalid session."""
    return BrokenModules(
        module_rules.sessions_are_valid, (nursery(plant(), session=session),), "module nursery", remedy
    )


def grant_case(
    remedy: str,
    commands: Names = ("get",),
    clear: Names = (),
    masked: Names = (),
    write: Names = (),
    rows: tuple[Where, ...] = (),
) -> BrokenModules:
    """Return a case: a role has an invalid grant for a valid model."""
    grant = Grant(model="plant", commands=commands, clear=clear, masked=masked, write=write, rows=rows)
    place = "module nursery: role gardener"
    return models_case(grants.grants_are_valid, place, remedy, plant(), roles=(Role("gardener", grant),))


def measure_by_function(fn: str, of: str) -> Measure:
    """Return a measure. Its function may be unknown."""
    return Measure(cast("Any", fn), of)


def views_case(remedy: str, *views: ListView) -> BrokenModules:
    """Return a case: the views of a list are invalid."""
    return models_case(presentations.views_are_valid, "plant.views", remedy, plant(views=views))


def risk_of_level(level: str) -> Risk:
    """Return a rule for the risk of a plan. Its level may be unknown."""
    return Risk(cast("Any", level), "unclear")


def plant_with_tone(tone: str) -> type[Model]:
    """Return the model `plant` with an option of this tone. The tone may be unknown."""
    return model("Plant", {"title": Text(), "state": Select(Option("seed", tone=cast("Any", tone)))})


def check_case(remedy: str, wrong_check: Check) -> BrokenModules:
    """Return a case: a validator of the model `plant`, which is called `is_tall`, is invalid."""
    attributes: dict[str, Any] = {"title": Text(), "height": Number(), "is_tall": wrong_check}
    attributes["total"] = Number(sum_of="leaf.size")
    leaf = model("Leaf", {"size": Number(), "plant": Ref("plant")})
    return models_case(package_code.checks_are_valid, "plant.is_tall", remedy, model("Plant", attributes), leaf)


def hook_case(remedy: str, wrong_hook: Hook, **options: Any) -> BrokenModules:
    """Return a case: a hook of the model `plant`, which is called `waters`, is invalid."""
    plant = model("Plant", cast("Any", {"title": Text(), "waters": wrong_hook}), **options)
    return models_case(package_code.hooks_are_valid, "module nursery: the hook waters", remedy, plant)


async def waters(work: Work) -> None:
    """Do nothing."""


def outside_case(remedy: str, event: str) -> BrokenModules:
    """Return a case: a hook of the module `nursery` for a model of another module is invalid."""
    module = Module("nursery", version="1.0.0", hooks=(on(event)(waters),))
    place = "module nursery: the hook waters"
    return BrokenModules(package_code.hooks_are_valid, (module, SOIL_MODULE), place, remedy)


async def awaits(title: str) -> str | None:
    """Return nothing, later."""


ON_UNKNOWN_FIELD = where("colour", eq="red")
COMPARED_WITH_TODAY = where("title", eq=TODAY)
SOIL_MODULE = Module("soil", version="1.0.0", models=(model("Bed", {"title": Text()}),))
ROLE_ON_BED = Role("gardener", Grant(model="bed"))

CASES: list[BrokenModules] = [
    models_case(models.options_are_known, "plant.shown", "correct it to one of name", plant(shown="title")),
    models_case(models.commands_are_known, "plant.commands", "name some of get", plant(commands=("get", "fetch"))),
    models_case(models.commands_are_known, "plant.commands", "take one out", plant(commands=("get", "get"))),
    models_case(models.shown_as_names_a_field, "plant.shown_as", "name a field of plant", plant(shown_as="name")),
    models_case(presentations.titles_are_fields, "plant.title_field", "name a field", plant(title_field="name")),
    models_case(
        presentations.titles_are_fields, "plant.subtitle_fields", "name fields", plant(subtitle_fields=("name",))
    ),
    models_case(
        presentations.titles_are_fields, "plant.subtitle_fields", "at most", plant(subtitle_fields=("title",) * 4)
    ),
    models_case(presentations.titles_are_fields, "plant.icon", "write it like", plant(icon="Box!")),
    models_case(presentations.titles_are_fields, "plant.group", "rename it", plant(group="My plants")),
    models_case(
        presentations.measures_are_valid,
        "plant.measures",
        "use one of",
        plant(measures=(measure_by_function("max", "height"),)),
    ),
    models_case(presentations.measures_are_valid, "plant.measures", "correct the", plant(measures=(Measure("sum"),))),
    models_case(
        presentations.measures_are_valid, "plant.measures", "name a Number", plant(measures=(Measure("sum", "title"),))
    ),
    models_case(
        presentations.measures_are_valid, "plant.measures", "name a Date", plant(measures=(Measure(date="title"),))
    ),
    models_case(
        presentations.measures_are_valid, "plant.measures", "when and among", plant(measures=(Measure("share"),))
    ),
    models_case(
        presentations.measures_are_valid,
        "plant.measures",
        "take it out",
        plant(measures=(Measure(among=ON_UNKNOWN_FIELD),)),
    ),
    models_case(
        presentations.measures_are_valid,
        "plant.measures",
        "no such field",
        plant(measures=(Measure(when=ON_UNKNOWN_FIELD),)),
    ),
    models_case(
        presentations.measures_are_valid,
        "plant.measures",
        "no TODAY",
        plant(measures=(Measure(when=COMPARED_WITH_TODAY),)),
    ),
    views_case("rename it", ListView("All of it", "All of it")),
    views_case("rename it", ListView("all", "All")),
    views_case("rename one", ListView("tall", "Tall"), ListView("tall", "Tall")),
    views_case("no such field", ListView("tall", "Tall", filter=(where("colour", eq="red"),))),
    views_case("use one of them", ListView("tall", "Tall", filter=(where("height", contains="1"),))),
    views_case("compared with a Date", ListView("tall", "Tall", filter=(where("height", gt=NEXT_QUARTER),))),
    views_case("take it out", ListView("tall", "Tall", filter=(where("height", eq=CALLER),))),
    views_case("can be ordered by", ListView("tall", "Tall", order=("-colour",))),
    views_case("at most", ListView("tall", "Tall", order=("height",) * 6)),
    models_case(presentations.tones_are_known, "plant.state", "use one of info", plant_with_tone("pink")),
    models_case(
        presentations.risks_are_valid, "plant.risks", "use one of low", plant(risks=(risk_of_level("severe"),))
    ),
    models_case(presentations.risks_are_valid, "plant.risks", "rename it", plant(risks=(Risk("high", "It is risky"),))),
    models_case(
        presentations.risks_are_valid, "plant.risks", "no such command", plant(risks=(Risk("low", "a", ("water",)),))
    ),
    models_case(
        presentations.risks_are_valid, "plant.risks", "no such field", plant(risks=(Risk("low", "a", fields=("b",)),))
    ),
    models_case(
        presentations.risks_are_valid,
        "plant.risks",
        "correct it",
        plant(risks=(Risk("low", "a", when=ON_UNKNOWN_FIELD),)),
    ),
    models_case(
        presentations.risks_are_valid,
        "plant.grow",
        "use low",
        plant_with_action(Move("seed", to="grown", risk=cast("Any", "no"))),
    ),
    models_case(models.locked_with_names_a_ref, "plant.locked_with", "name the ref", plant(locked_with="title")),
    models_case(models.locked_with_names_a_ref, "plant.locked_with", "name the ref", plant(locked_with="bed")),
    lock_case("correct it", where("colour", eq="red")),
    lock_case("correct it", where("id", eq="0" * 24)),
    lock_case("use one of them", where("height", contains="1")),
    lock_case("correct it", where("height", eq="1")),
    lock_case("correct it", where("state", eq="withered")),
    lock_case("correct it", where("title", is_null="yes")),
    lock_case("in brackets", where("height", in_=3)),
    lock_case("correct it", where("height", in_=[])),
    lock_case("correct it", where("height", in_=[1, "2"])),
    lock_case("use eq", where("sown", in_=[TODAY])),
    lock_case("take it out", where("height", eq=TODAY)),
    lock_case("take it out", where("gardener", eq=CALLER)),
    models_case(
        workflows.workflow_field_is_a_select,
        "plant.stage",
        "correct the field's name",
        model("Plant", {"title": Text(), "workflow": Workflow("stage")}),
    ),
    models_case(
        workflows.workflow_field_is_a_select,
        "plant.title",
        "correct the field's name",
        model("Plant", {"title": Text(), "workflow": Workflow("title")}),
    ),
    models_case(
        workflows.workflow_field_is_a_select,
        "plant.state",
        "take the default out",
        model("Plant", {"state": Select("seed", "grown", default="grown"), "workflow": Workflow("state")}),
    ),
    models_case(workflows.moves_between_options, "plant.grow", "name some", plant_with_action(Move(to="grown"))),
    models_case(
        workflows.moves_between_options, "plant.grow", "use one of seed", plant_with_action(Move("sead", to="grown"))
    ),
    models_case(
        workflows.moves_between_options, "plant.grow", "use one of seed", plant_with_action(Move("seed", to="tree"))
    ),
    models_case(
        workflows.inputs_settable,
        "plant.grow",
        "or declare the field",
        plant_with_action(Move("seed", inputs=("size",))),
    ),
    models_case(
        workflows.inputs_settable, "plant.grow", "take it out", plant_with_action(Move("seed", inputs=("state",)))
    ),
    models_case(
        workflows.inputs_settable, "plant.grow", "let an effect", plant_with_action(Move("seed", inputs=("sown",)))
    ),
    models_case(
        workflows.inputs_settable,
        "plant.grow",
        "fits the field",
        plant_with_action(Move("seed", optional={"sown": "x"})),
    ),
    models_case(workflows.guards_are_valid, "plant.grow", "correct it", plant(where("colour", eq="red"))),
    models_case(workflows.guards_are_valid, "plant.grow", "correct it", plant(where("height", gt="1"))),
    models_case(workflows.guards_are_valid, "plant.grow", "use one of them", plant(where("gardener", gt="1"))),
    models_case(
        workflows.action_effects_are_valid,
        "plant.grow",
        "that may be empty",
        plant_with_action(Move("seed", clears=("colour",))),
    ),
    models_case(
        workflows.action_effects_are_valid,
        "plant.grow",
        "that may be empty",
        plant_with_action(Move("seed", clears=("state",))),
    ),
    models_case(
        workflows.action_effects_are_valid,
        "plant.grow",
        "exactly one ref",
        plant_with_action(Move("seed", needs_records=("user",))),
    ),
    models_case(
        workflows.reads_are_related_models,
        "plant.grow",
        "the target of a ref of plant",
        plant_with_action(Move("seed", reads=("plot",))),
    ),
    models_case(
        workflows.action_rules_are_valid,
        "plant.grow",
        "ref.field",
        plant_with_action(Move("seed", rules=(where("x.y", eq=1),))),
    ),
    models_case(
        workflows.reads_are_related_models, "plant.reads", "the target of a ref of plant", plant(reads=("plot",))
    ),
    models_case(
        conditions.approvals_are_valid,
        "plant.title",
        "no such field",
        model("Plant", {"title": Text(needs_approval=where("colour", eq="red"))}),
    ),
    rule_case("rules", "write field, or ref.field", rules=(where("colour", eq="red"),)),
    rule_case("rules", "write field, or ref.field", rules=(where("title.name", eq="red"),)),
    rule_case("rules", "write field, or ref.field", rules=(where("title", eq=FieldOf("gardener.colour")),)),
    rule_case("rules", "of one kind", rules=(where("title", eq=FieldOf("height")),)),
    rule_case("rules", "correct it", rules=(where("height", ne="0"),)),
    rule_case("locked_while", "name that ref", locked_while=(where("title", eq="x"),)),
    rule_case("locked_while", "correct it", locked_with="gardener", locked_while=(where("colour", eq="x"),)),
    models_case(
        models.needs_approval_names_commands,
        "plant.needs_approval",
        "name create or update",
        model("Plant", {"title": Text()}, needs_approval=("delete",)),
    ),
    models_case(
        conditions.unique_with_names_a_ref,
        "plant.title",
        "name a ref",
        model("Plant", {"title": Text(unique_with="height"), "height": Number()}),
    ),
    models_case(
        conditions.unique_with_names_a_ref,
        "plant.title",
        "name a field of the record",
        model("Plant", {"title": Text(unique_with="gardener", shared_by="size"), "gardener": Ref("user")}),
    ),
    models_case(
        conditions.unique_with_names_a_ref,
        "plant.title",
        "neither computed nor a total",
        model(
            "Plant",
            {
                "title": Text(unique_with="next", shared_by="tall"),
                "next": Ref("plant"),
                "tall": Text(computed=lambda title: title),
            },
        ),
    ),
    check_case("name fields of plant", check()(lambda: None)),
    check_case("correct the name", check("colour")(lambda colour: None)),
    check_case("name them title", check("title")(lambda text: None)),
    check_case("name them title, height", check("title", "height")(lambda title: None)),
    check_case("check what is added up", check("total")(lambda total: None)),
    check_case("take async out", check("title")(cast("Any", awaits))),
    hook_case("use create, update", on("change")(waters)),
    hook_case("use create, update", on("delete:title")(waters)),
    hook_case("correct the event", on("update:colour")(waters)),
    hook_case("name one", on()(waters)),
    hook_case("write async def", on("create")(cast("Any", lambda work: work))),
    hook_case("use a validator or an action", on("create")(waters), table=Table("plant", key="id")),
    outside_case("write events like party.create", "tree.create"),
    outside_case("add 'soil' to needs", "bed.create"),
    outside_case("take it out", "user.create"),
    session_case('must be like "app.tenant"', {"tenant": "user.tenant"}),
    session_case('must be like "app.tenant"', {"app.tenant; RESET ROLE": "user.tenant"}),
    session_case("take it from one of user.id", {"app.tenant": "user.email"}),
    BrokenModules(
        module_rules.session_roles_are_valid,
        (nursery(plant(), session_roles={"gardener": ""}),),
        "module nursery",
        "cannot be the name of a role",
    ),
    BrokenModules(
        module_rules.session_roles_are_valid,
        (
            Module("soil", version="1.0.0", session_roles={"gardener": "app_soil"}),
            nursery(plant(), session_roles={"gardener": "app_plants"}),
        ),
        "module nursery",
        "map it to one role",
    ),
    session_case("more than 10 settings", {f"app.a{number}": "user.id" for number in range(11)}),
    BrokenModules(
        module_rules.sessions_are_valid,
        (
            Module("soil", version="1.0.0", session={"app.tenant": "user.tenant"}),
            nursery(plant(), session={"app.tenant": "user.external_id"}),
        ),
        "module nursery",
        "take it from one field",
    ),
    setting_case("rename it", Setting("soil.kind", ("a",))),
    setting_case("correct them", Setting("nursery.kind", ())),
    setting_case("correct them", Setting("nursery.kind", ("a", "a"))),
    models_case(grants.roles_named, "module nursery: role Gardener", "rename it", plant(), roles=(Role("Gardener"),)),
    models_case(
        grants.roles_named,
        "module nursery: role gardener",
        "name some of base.unmask",
        plant(),
        roles=(Role("gardener", rights=("base.fly",)),),
    ),
    models_case(
        grants.granted_models_exist, "module nursery: role gardener", "correct the name", plant(), roles=(ROLE_ON_BED,)
    ),
    BrokenModules(
        grants.granted_models_exist,
        (nursery(plant(), roles=(ROLE_ON_BED,)), SOIL_MODULE),
        "module nursery: role gardener",
        "add 'soil' to needs",
    ),
    grant_case("name some of get", commands=("get", "water")),
    grant_case("correct the name", clear=("colour",)),
    grant_case("name it in clear", masked=("height",)),
    grant_case("take it out of write", write=("sown",)),
    grant_case("correct it", rows=(where("colour", eq="red"),)),
    grant_case("correct it", rows=(where("id", eq=5),)),
    grant_case("take it out", rows=(where("height", eq=CALLER),)),
    grant_case("use in_", rows=tuple(where("height", eq=number) for number in range(51))),
]
