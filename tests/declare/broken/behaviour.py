"""Workflows, locks, class statements and grants that break a rule, one case for each way."""

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
    Text,
    Where,
    Workflow,
    where,
)
from countersign.declare.module import Names
from countersign.declare.rules import conditions, grants, models, presentations, workflows
from countersign.declare.rules import modules as module_rules
from tests.declare.planting import BrokenModules, model, models_case, nursery


def plant(*guards: Where, **options: object) -> type[Model]:
    """A valid model, except for the given attributes."""
    attributes: dict[str, Field | Workflow] = {
        "title": Text(),
        "height": Number(),
        "sown": Date(readonly=True),
        "gardener": Ref("user"),
        "state": Select("seed", "grown"),
        "workflow": Workflow("state", grow=Move("seed", to="grown", guards=guards)),
    }
    return model("Plant", attributes, **options)


def moved(move: Move) -> type[Model]:
    """A valid model with this action."""
    attributes: dict[str, Field | Workflow] = {
        "title": Text(),
        "sown": Date(readonly=True),
        "state": Select("seed", "grown"),
        "workflow": Workflow("state", grow=move),
    }
    return model("Plant", attributes)


def locked(remedy: str, *wrong: Where) -> BrokenModules:
    """A wrong condition of a lock."""
    return models_case(conditions.locks_fit, "plant.locked", remedy, plant(locked=wrong))


def ruled(place: str, remedy: str, **options: object) -> BrokenModules:
    """A wrong rule, or a wrong condition on the record of `locked_with`."""
    rule = conditions.rules_fit if place == "rules" else conditions.locks_fit
    return models_case(rule, f"plant.{place}", remedy, plant(**options))


def setting(remedy: str, wrong: Setting) -> BrokenModules:
    """A wrong setting of a module."""
    return BrokenModules(module_rules.settings_named, (nursery(plant(), settings=(wrong,)),), "module nursery", remedy)


def granted(
    remedy: str,
    commands: Names = ("get",),
    clear: Names = (),
    masked: Names = (),
    write: Names = (),
    rows: tuple[Where, ...] = (),
) -> BrokenModules:
    """A wrong grant on a valid model."""
    grant = Grant(model="plant", commands=commands, clear=clear, masked=masked, write=write, rows=rows)
    place = "module nursery: role gardener"
    return models_case(grants.grants_fit, place, remedy, plant(), roles=(Role("gardener", grant),))


def measure(fn: str, of: str) -> Measure:
    """A measure by a function that may not exist."""
    return Measure(cast("Any", fn), of)


def viewed(remedy: str, *views: ListView) -> BrokenModules:
    """Wrong views of a list."""
    return models_case(presentations.views_fit, "plant.views", remedy, plant(views=views))


def risk(level: str) -> Risk:
    """A rule with a level that may not exist."""
    return Risk(cast("Any", level), "unclear")


def toned(tone: str) -> type[Model]:
    """A model with an option of this tone."""
    return model("Plant", {"title": Text(), "state": Select(Option("seed", tone=cast("Any", tone)))})


WRONG = where("colour", eq="red")
NOW = where("title", eq=TODAY)
SOIL = Module("soil", version="1.0.0", models=(model("Bed", {"title": Text()}),))
ON_BED = Role("gardener", Grant(model="bed"))

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
        presentations.measures_fit, "plant.measures", "use one of", plant(measures=(measure("max", "height"),))
    ),
    models_case(presentations.measures_fit, "plant.measures", "correct the", plant(measures=(Measure("sum"),))),
    models_case(
        presentations.measures_fit, "plant.measures", "name a Number", plant(measures=(Measure("sum", "title"),))
    ),
    models_case(presentations.measures_fit, "plant.measures", "name a Date", plant(measures=(Measure(date="title"),))),
    models_case(presentations.measures_fit, "plant.measures", "when and among", plant(measures=(Measure("share"),))),
    models_case(presentations.measures_fit, "plant.measures", "take it out", plant(measures=(Measure(among=WRONG),))),
    models_case(presentations.measures_fit, "plant.measures", "no such field", plant(measures=(Measure(when=WRONG),))),
    models_case(presentations.measures_fit, "plant.measures", "no TODAY", plant(measures=(Measure(when=NOW),))),
    viewed("rename it", ListView("All of it", "All of it")),
    viewed("rename it", ListView("all", "All")),
    viewed("rename one", ListView("tall", "Tall"), ListView("tall", "Tall")),
    viewed("no such field", ListView("tall", "Tall", filter=(where("colour", eq="red"),))),
    viewed("use one of them", ListView("tall", "Tall", filter=(where("height", contains="1"),))),
    viewed("compared with a Date", ListView("tall", "Tall", filter=(where("height", gt=NEXT_QUARTER),))),
    viewed("take it out", ListView("tall", "Tall", filter=(where("height", eq=CALLER),))),
    viewed("can be ordered by", ListView("tall", "Tall", order=("-colour",))),
    viewed("at most", ListView("tall", "Tall", order=("height",) * 6)),
    models_case(presentations.tones_are_known, "plant.state", "use one of info", toned("pink")),
    models_case(presentations.risks_fit, "plant.risks", "use one of low", plant(risks=(risk("severe"),))),
    models_case(presentations.risks_fit, "plant.risks", "rename it", plant(risks=(Risk("high", "It is risky"),))),
    models_case(
        presentations.risks_fit, "plant.risks", "no such command", plant(risks=(Risk("low", "a", ("water",)),))
    ),
    models_case(
        presentations.risks_fit, "plant.risks", "no such field", plant(risks=(Risk("low", "a", fields=("b",)),))
    ),
    models_case(presentations.risks_fit, "plant.risks", "correct it", plant(risks=(Risk("low", "a", when=WRONG),))),
    models_case(
        presentations.risks_fit, "plant.grow", "use low", moved(Move("seed", to="grown", risk=cast("Any", "no")))
    ),
    models_case(models.locked_with_names_a_ref, "plant.locked_with", "name the ref", plant(locked_with="title")),
    models_case(models.locked_with_names_a_ref, "plant.locked_with", "name the ref", plant(locked_with="bed")),
    locked("correct it", where("colour", eq="red")),
    locked("correct it", where("id", eq="0" * 24)),
    locked("use one of them", where("height", contains="1")),
    locked("correct it", where("height", eq="1")),
    locked("correct it", where("state", eq="withered")),
    locked("correct it", where("title", is_null="yes")),
    locked("in brackets", where("height", in_=3)),
    locked("correct it", where("height", in_=[])),
    locked("correct it", where("height", in_=[1, "2"])),
    locked("use eq", where("sown", in_=[TODAY])),
    locked("take it out", where("height", eq=TODAY)),
    locked("take it out", where("gardener", eq=CALLER)),
    models_case(
        workflows.workflow_field_is_a_select,
        "plant.stage",
        "correct its name",
        model("Plant", {"title": Text(), "workflow": Workflow("stage")}),
    ),
    models_case(
        workflows.workflow_field_is_a_select,
        "plant.title",
        "correct its name",
        model("Plant", {"title": Text(), "workflow": Workflow("title")}),
    ),
    models_case(
        workflows.workflow_field_is_a_select,
        "plant.state",
        "take the default out",
        model("Plant", {"state": Select("seed", "grown", default="grown"), "workflow": Workflow("state")}),
    ),
    models_case(workflows.moves_between_options, "plant.grow", "name some", moved(Move(to="grown"))),
    models_case(workflows.moves_between_options, "plant.grow", "use one of seed", moved(Move("sead", to="grown"))),
    models_case(workflows.moves_between_options, "plant.grow", "use one of seed", moved(Move("seed", to="tree"))),
    models_case(workflows.inputs_settable, "plant.grow", "or declare the field", moved(Move("seed", inputs=("size",)))),
    models_case(workflows.inputs_settable, "plant.grow", "take it out", moved(Move("seed", inputs=("state",)))),
    models_case(workflows.inputs_settable, "plant.grow", "let an effect", moved(Move("seed", inputs=("sown",)))),
    models_case(workflows.inputs_settable, "plant.grow", "fits the field", moved(Move("seed", optional={"sown": "x"}))),
    models_case(workflows.guards_fit, "plant.grow", "correct it", plant(where("colour", eq="red"))),
    models_case(workflows.guards_fit, "plant.grow", "correct it", plant(where("height", gt="1"))),
    models_case(workflows.guards_fit, "plant.grow", "use one of them", plant(where("gardener", gt="1"))),
    models_case(
        workflows.action_effects_fit, "plant.grow", "that may be empty", moved(Move("seed", clears=("colour",)))
    ),
    models_case(
        workflows.action_effects_fit, "plant.grow", "that may be empty", moved(Move("seed", clears=("state",)))
    ),
    models_case(
        workflows.action_effects_fit, "plant.grow", "exactly one ref", moved(Move("seed", needs_records=("user",)))
    ),
    models_case(workflows.reads_fit, "plant.grow", "a ref of plant leads to", moved(Move("seed", reads=("plot",)))),
    models_case(
        workflows.action_rules_fit, "plant.grow", "ref.field", moved(Move("seed", rules=(where("x.y", eq=1),)))
    ),
    models_case(workflows.reads_fit, "plant.reads", "a ref of plant leads to", plant(reads=("plot",))),
    models_case(
        conditions.approvals_fit,
        "plant.title",
        "no such field",
        model("Plant", {"title": Text(needs_approval=where("colour", eq="red"))}),
    ),
    ruled("rules", "write field, or ref.field", rules=(where("colour", eq="red"),)),
    ruled("rules", "write field, or ref.field", rules=(where("title.name", eq="red"),)),
    ruled("rules", "write field, or ref.field", rules=(where("title", eq=FieldOf("gardener.colour")),)),
    ruled("rules", "of one kind", rules=(where("title", eq=FieldOf("height")),)),
    ruled("rules", "correct it", rules=(where("height", ne="0"),)),
    ruled("locked_while", "name that ref", locked_while=(where("title", eq="x"),)),
    ruled("locked_while", "correct it", locked_with="gardener", locked_while=(where("colour", eq="x"),)),
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
    setting("rename it", Setting("soil.kind", ("a",))),
    setting("correct them", Setting("nursery.kind", ())),
    setting("correct them", Setting("nursery.kind", ("a", "a"))),
    models_case(grants.roles_named, "module nursery: role Gardener", "rename it", plant(), roles=(Role("Gardener"),)),
    models_case(
        grants.roles_named,
        "module nursery: role gardener",
        "name some of base.unmask",
        plant(),
        roles=(Role("gardener", rights=("base.fly",)),),
    ),
    models_case(
        grants.granted_models_exist, "module nursery: role gardener", "correct the name", plant(), roles=(ON_BED,)
    ),
    BrokenModules(
        grants.granted_models_exist,
        (nursery(plant(), roles=(ON_BED,)), SOIL),
        "module nursery: role gardener",
        "add 'soil' to needs",
    ),
    granted("name some of get", commands=("get", "water")),
    granted("correct the name", clear=("colour",)),
    granted("name it in clear", masked=("height",)),
    granted("take it out of write", write=("sown",)),
    granted("correct it", rows=(where("colour", eq="red"),)),
    granted("correct it", rows=(where("id", eq=5),)),
    granted("take it out", rows=(where("height", eq=CALLER),)),
    granted("use in_", rows=tuple(where("height", eq=number) for number in range(51))),
]
