"""`countersign version` and `completion`: print the versions of the program's parts, and a shell completion script."""

import platform
import sys

import click

from countersign import __version__
from countersign.cli import output

SHELLS = ("bash", "zsh", "fish")


@click.command()
@output.json_option
def version() -> None:
    """Print the versions of the program, its database schemas, Python and SQLite."""
    # These modules load SQLite. They are imported here so that other commands start faster.
    from countersign.kernel.database import migrate, sqlite_connection
    from countersign.records import migrations as records_migrations
    from countersign.store import migrations as store_migrations

    packages = (store_migrations, records_migrations)
    schemas = {package.SCHEMA: migrate.migrations(package.__name__)[-1].name for package in packages}
    value = {
        "version": __version__,
        "schemas": schemas,
        "python": platform.python_version(),
        "sqlite": sqlite_connection.LIBRARY,
        "system": f"{sys.platform} {platform.machine()}",
    }
    shown_values = {**value, "schemas": ", ".join(f"{schema} {name}" for schema, name in schemas.items())}
    output.print_result(value, "\n".join(f"{name}: {text}" for name, text in shown_values.items()))


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that makes SHELL complete commands and options.

    For bash, put this line into ~/.bashrc (zsh and fish have similar files):

        eval "$(countersign completion bash)"
    """
    from click.shell_completion import get_completion_class

    from countersign.cli.main import commands

    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise LookupError(f"click has no completion script for {shell}")
    click.echo(completion_class(commands, {}, "countersign", "_COUNTERSIGN_COMPLETE").source())
