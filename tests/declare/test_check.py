"""Every rule about declarations is broken once in each way, and its error gives the author the remedy."""

import re
from pathlib import Path

import pytest

from countersign.declare import (
    CALLER,
    TODAY,
    Date,
    DeclarationError,
    Grant,
    Move,
    Ref,
    Role,
    Select,
    Text,
    Workflow,
    where,
)
from countersign.declare.module import ADMINISTRATOR
from countersign.declare.registry import STAGES, Registry
from countersign.declare.rules import grants, modules
from countersign.records import builtin_commands, migrations
from countersign.records import modules as switched_on
from countersign.records.access.visibility import RIGHTS, grantable
from tests.declare.broken import behaviour, fields, kinds, tables
from tests.declare.broken import modules as broken_modules
from tests.declare.sample_modules import BASE, BrokenModules, model, nursery, registry

CASES = [*broken_modules.CASES, *kinds.CASES, *fields.CASES, *behaviour.CASES, *tables.CASES]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.rule.__name__}-{number}" for number, case in enumerate(CASES)])
def test_a_broken_rule_is_reported_with_file_model_field_and_remedy(case: BrokenModules) -> None:
    with pytest.raises(DeclarationError) as refusal:
        Registry([BASE, *case.modules])

    error_lines = str(refusal.value).splitlines()
    pattern = rf"[^:]*tests/declare/[a-z_/]+\.py: {re.escape(case.place)}: .*{re.escape(case.remedy)}"
    assert [line for line in error_lines if re.match(pattern, line)], error_lines


@pytest.mark.parametrize("rule", [rule for stage in STAGES for rule in stage], ids=lambda rule: rule.__name__)
def test_every_rule_is_shown_able_to_fail(rule: object) -> None:
    assert rule in [case.rule for case in CASES]


def test_all_complaints_of_a_stage_are_reported_at_once() -> None:
    plant = model("Plant", {"title": Text(personal="email"), "height": Text(max_length=0)})

    with pytest.raises(DeclarationError) as refusal:
        registry(plant)

    assert [line.split(": ")[1] for line in str(refusal.value).splitlines()] == ["plant.height", "plant.title"]


def test_names_of_the_full_length_are_accepted() -> None:
    plant = model("Plant", {"h" * 40: Text()}, name="p" * 40)

    assert registry(plant).models.keys() == {"user", "p" * 40}


def test_valid_conditions_are_accepted() -> None:
    rows = (
        where("id", eq=CALLER),
        where("owner", in_=[CALLER]),
        where("title", eq=CALLER),
        where("sown", lte=TODAY),
        where("state", gt="seed"),
        where("owner", is_null=False),
        where("title", contains=""),
    )
    guards = (where("sown", lte=TODAY), where("state", in_=("seed", "grown")))
    plant = model(
        "Plant",
        {
            "title": Text(),
            "sown": Date(),
            "owner": Ref("user"),
            "state": Select("seed", "grown"),
            "workflow": Workflow("state", grow=Move("seed", to="grown", guards=guards)),
        },
        locked=guards,
    )

    plant_registry = registry(plant, roles=(Role("gardener", Grant(model="plant", rows=rows)),))

    assert plant_registry.models["plant"].locked == guards


def test_two_models_with_the_same_name_are_refused_and_both_files_named() -> None:
    with pytest.raises(DeclarationError, match=r"sample_modules\.py: user: .*sample_modules\.py: rename one"):
        registry(model("User", {"title": Text()}))


def test_the_shipped_modules_keep_every_rule() -> None:
    shipped = switched_on.found(["party", "crm", "billing", "helpdesk"])

    assert {"party", "address", "lead", "activity", "invoice", "ticket", "user", "plan"} <= shipped.models.keys()
    assert ADMINISTRATOR not in shipped.roles


def test_a_module_is_refused_while_a_required_module_is_switched_off() -> None:
    with pytest.raises(DeclarationError, match="add party to COUNTERSIGN_MODULES"):
        switched_on.found(["crm"])


def test_the_engines_own_commands_and_rights_can_be_granted() -> None:
    commands = grantable({name: frozenset(sentence) for name, sentence in builtin_commands.SENTENCES.items()})
    assert {name: set(builtin_command) for name, builtin_command in grants.BUILTIN_COMMANDS.items()} == {
        name: command for name, command in commands.items() if command
    }
    assert set(grants.RIGHTS) == RIGHTS


def test_no_model_can_take_the_place_of_an_engines_table() -> None:
    migrations_sql = "".join(file.read_text() for file in Path(migrations.__path__[0]).glob("*.sql"))

    assert {*re.findall(r"CREATE TABLE (\w+)", migrations_sql), "schema_migration"} == modules.ENGINE_TABLES


def test_an_empty_module_is_a_module() -> None:
    assert Registry([BASE, nursery()]).models.keys() == {"user"}
