"""`countersign connect` with its subcommands, which read and change the module text that it has written."""

from typing import Any

import click

from countersign.cli.admin import connect as connect_command
from countersign.cli.admin import connect_changes, connect_check, connect_review, connect_watch


class ConnectGroup(click.Group):
    """A group that runs the command `default` if the first argument is not the name of a subcommand."""

    def __init__(self, name: str, default: click.Command, commands: list[click.Command]) -> None:
        super().__init__(name, commands={str(each.name): each for each in commands}, help=default.help)
        self.default = default
        rows = "\n".join(f"  {each.name:<8}{each.get_short_help_str(80)}" for each in commands)
        default.epilog = f"\b\nCommands for the module text:\n{rows}"

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments of the group, or those of `default`."""
        if args and args[0] in self.commands:
            return super().make_context(info_name, args, parent, **extra)
        known = ", ".join(self.commands)
        if args and "://" not in args[0] and not args[0].startswith("-"):
            raise click.UsageError(f"{args[0]!r} is neither a URL nor a command for a module text: {known}")
        # Parsing empties the list.
        given = frozenset(args)
        try:
            return self.default.make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if not given.isdisjoint(self.commands):
                raise click.UsageError(f"{error.message}. Write the command first: {known}", error.ctx) from None
            raise


connect = ConnectGroup(
    "connect",
    connect_command.connect,
    [
        connect_review.review,
        connect_check.check,
        connect_check.rights,
        connect_changes.diff,
        connect_changes.accept,
        connect_watch.watch,
    ],
)
