"""Small modules for the tests of declarations.

The models describe the plants of a nursery. A registry of such a module also has the module `base`, whose only model is
the user."""

from collections.abc import Mapping
from typing import NamedTuple, cast

from countersign.declare import Field, Model, Module, Role, Setting, Text, Workflow
from countersign.declare.registry import Registry
from countersign.declare.rules.declarations import Rule


class User(Model):
    """A person."""

    username = Text()


BASE = Module("base", version="1.0.0", models=(User,))


def model(class_name: str, attributes: Mapping[str, Field | Workflow], **options: object) -> type[Model]:
    """Return a model as its class statement would create it."""
    return cast("type[Model]", type(class_name, (Model,), dict(attributes), **options))


def nursery(
    *models: type[Model],
    needs: tuple[str, ...] = (),
    roles: tuple[Role, ...] = (),
    settings: tuple[Setting, ...] = (),
    kinds: tuple[type[Field], ...] = (),
    session: Mapping[str, str] | None = None,
    session_roles: Mapping[str, str] | None = None,
) -> Module:
    """Return a module with these models."""
    return Module(
        "nursery",
        version="1.0.0",
        models=models,
        needs=needs,
        roles=roles,
        settings=settings,
        kinds=kinds,
        session=session,
        session_roles=session_roles,
    )


def registry(*models: type[Model], roles: tuple[Role, ...] = ()) -> Registry:
    """Return a registry with `base` and a module of these models."""
    return Registry([BASE, nursery(*models, roles=roles)])


class BrokenModules(NamedTuple):
    """Modules that break one rule: the expected place in the error, without the file, and the expected remedy."""

    rule: Rule
    modules: tuple[Module, ...]
    place: str
    remedy: str


def models_case(
    rule: Rule, expected_place: str, remedy: str, *models: type[Model], roles: tuple[Role, ...] = ()
) -> BrokenModules:
    """Return a case of one module with these models."""
    return BrokenModules(rule, (nursery(*models, roles=roles),), expected_place, remedy)


def field_case(
    rule: Rule, remedy: str, wrong_field: Field, *, name: str = "height", roles: tuple[Role, ...] = ()
) -> BrokenModules:
    """Return a case of one model with a wrong field beside valid ones."""
    plant = model("Plant", {"title": Text(), name: wrong_field})
    return models_case(rule, f"plant.{name}", remedy, plant, roles=roles)
