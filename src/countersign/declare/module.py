"""A module: a named set of models and roles, installable on its own."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

from countersign.declare.access import Role
from countersign.declare.model import Model


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that a module reads: one of the `options`, of which the first is the default. In the model `setting`
    its title is `name`, and its value the option as JSON: `"party"`."""

    name: str
    options: tuple[str, ...]
    help: str = ""


class Module:
    """What a package offers under the entry-point group `countersign.modules`.

    `needs` names the modules whose models its refs and grants speak of (`base` is always there). `source` is the file
    it stands in.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str,
        label: str = "",
        needs: Sequence[str] = (),
        models: Sequence[type[Model]] = (),
        roles: Sequence[Role] = (),
        settings: Sequence[Setting] = (),
    ) -> None:
        self.name = name
        self.version = version
        self.label = label or name.capitalize()
        self.needs = tuple(needs)
        self.models = tuple(models)
        self.roles = tuple(roles)
        self.settings = tuple(settings)
        frame = inspect.currentframe()
        self.source = frame.f_back.f_code.co_filename if frame is not None and frame.f_back is not None else ""
