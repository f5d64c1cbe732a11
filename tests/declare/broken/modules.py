"""Modules and names that break a rule, one case for each possible mistake."""

from countersign.declare import Model, Module, Move, Select, Text, Workflow
from countersign.declare.rules import fields, modules, workflows
from tests.declare.sample_modules import BrokenModules, model, models_case, nursery

SHARED = Text()
TITLE = "title"


def titled_model(name: str) -> type[Model]:
    """Return a valid model."""
    return model(name, {TITLE: Text()})


class Bed(Model):
    """A bed of plants."""

    title = Text()


class Hotbed(Bed):
    """A heated bed, whose author believes that fields are inherited."""

    degrees = Text()


def acting(**moves: Move) -> type[Model]:
    """Return a model with these actions."""
    return model("Plant", {"state": Select("seed", "grown"), "workflow": Workflow("state", **moves)})


CASES: list[BrokenModules] = [
    BrokenModules(modules.modules_named, (Module("Nursery", version="1"),), "module Nursery", "rename it"),
    BrokenModules(modules.modules_named, (nursery(), Module("nursery", version="2")), "module nursery", "rename one"),
    BrokenModules(modules.modules_named, (Module("nursery", version=" "),), "module nursery", 'version="1.0.0"'),
    BrokenModules(
        modules.needs_enabled, (nursery(needs=("soil",)),), "module nursery", "add soil to COUNTERSIGN_MODULES"
    ),
    BrokenModules(
        modules.needs_acyclic,
        (nursery(needs=("soil",)), Module("soil", version="1", needs=("nursery",))),
        "module nursery",
        "move what both use",
    ),
    models_case(modules.models_named, "Plant", "rename the class", model("P", {TITLE: Text()}, name="Plant")),
    models_case(modules.models_named, "plant__bed", "rename the class", model("P", {TITLE: Text()}, name="plant__bed")),
    models_case(modules.models_named, "p" * 41, "40 at most", model("P", {TITLE: Text()}, name="p" * 41)),
    models_case(modules.models_named, "auth", "rename it", titled_model("Auth")),
    models_case(modules.models_named, "password", "rename it", titled_model("Password")),
    models_case(modules.models_named, "sqlite_plant", "rename it", titled_model("SqlitePlant")),
    models_case(modules.fields_named, "plant.Height", "rename it", model("Plant", {"Height": Text()})),
    models_case(modules.fields_named, "plant.height__folded", "rename it", model("Plant", {"height__folded": Text()})),
    models_case(modules.fields_named, "plant.größe", "rename it", model("Plant", {"größe": Text()})),
    models_case(modules.fields_named, "plant.id", "rename it", model("Plant", {"id": Text()})),
    models_case(modules.fields_named, "plant.revision", "rename it", model("Plant", {"revision": Text()})),
    models_case(modules.fields_named, "plant.changed", "rename it", model("Plant", {"changed": Text()})),
    models_case(modules.fields_named, "plant.xmin", "rename it", model("Plant", {"xmin": Text()})),
    models_case(
        modules.fields_named,
        "plant.height",
        "by a call of its own",
        model("Plant", {"height": SHARED, "width": SHARED}),
    ),
    models_case(
        modules.former_names_free,
        "plant.height",
        "leave it out",
        model("Plant", {"height": Text(former_name="size"), "size": Text()}),
    ),
    models_case(
        modules.former_names_free,
        "plant.height",
        "leave it out",
        model("Plant", {"height": Text(former_name="size"), "width": Text(former_name="size")}),
    ),
    models_case(modules.actions_named, "plant.update", "rename the action", acting(update=Move("seed", to="grown"))),
    models_case(modules.actions_named, "plant.Grow", "rename it", acting(Grow=Move("seed", to="grown"))),
    models_case(
        modules.actions_named,
        f"{'p' * 40}.{'g' * 30}",
        "shorten it",
        model(
            "Plant",
            {"state": Select("seed"), "workflow": Workflow("state", **{"g" * 30: Move("seed", to="seed")})},
            name="p" * 40,
        ),
    ),
    models_case(fields.fields_present, "plant", "declare one", model("Plant", {})),
    models_case(fields.fields_present, "hotbed", "derive it from Model", Hotbed),
    models_case(
        workflows.one_workflow,
        "plant",
        "make them one",
        model("Plant", {"state": Select("seed"), "first": Workflow("state"), "second": Workflow("state")}),
    ),
]
