"""docs/reference/cli.md describes exactly what the command line does."""

import re
from pathlib import Path

import click
import pytest

from countersign.cli.admin.connect_group import ConnectGroup
from countersign.cli.main import COMMANDS, commands
from countersign.cli.output import MEANINGS, Exit

DOCUMENT = (Path(__file__).parents[2] / "docs/reference/cli.md").read_text()


def test_every_exit_code_is_documented_with_its_meaning() -> None:
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", DOCUMENT, re.MULTILINE))

    assert rows == {str(int(code)): meaning for code, meaning in MEANINGS.items()}
    assert set(MEANINGS) == set(Exit)


def options_of(name: str, command: click.Command) -> list[tuple[str, str]]:
    """Return the long options of the command and its subcommands, each with the full command name."""
    if isinstance(command, ConnectGroup):
        own = options_of(name, command.default)
        return own + [item for sub, inner in command.commands.items() for item in options_of(f"{name} {sub}", inner)]
    if isinstance(command, click.Group):
        return [option for sub, inner in command.commands.items() for option in options_of(f"{name} {sub}", inner)]
    return [(name, option) for parameter in command.params for option in parameter.opts if option.startswith("--")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    command = commands.get_command(click.Context(commands), name)

    assert command is not None
    for full_name, option in options_of(name, command):
        assert f"`{full_name}" in DOCUMENT
        assert option in DOCUMENT, f"{full_name} {option}"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_needs_no_import_and_its_help_works(name: str) -> None:
    command = commands.get_command(click.Context(commands), name)

    assert command is not None
    assert COMMANDS[name].summary.endswith(".")
    assert command.help
