"""The `countersign` command, with the list of its subcommands and the modules that define them."""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import groupby
from typing import NamedTuple

import click

from countersign import __version__
from countersign.cli import output
from countersign.cli.options import server_option
from countersign.cli.output import Exit, Failure
from countersign.kernel.errors import is_disk_full


class Entry(NamedTuple):
    """A command that is imported when it is run: its import path (`module:name`), and its heading and summary in the
    help."""

    import_path: str
    heading: str
    summary: str


COMMANDS = {
    "serve": Entry("server.serve:serve", "Run a server", "Start the services of a data directory."),
    "worker": Entry("server.worker:worker", "Run a server", "Run the jobs of a store, also on another machine."),
    "config": Entry("configuration:config", "Run a server", "Show every setting, its value and its source."),
    "doctor": Entry("server.doctor:doctor", "Run a server", "Check what a server needs; failures name a remedy."),
    "db": Entry("admin.databases:db", "Run a server", "Upgrade the databases, or migrate them to PostgreSQL."),
    "installation": Entry(
        "admin.installation:installation",
        "Run a server",
        "Show or join the parts of an installation; remove unused files.",
    ),
    "org": Entry("admin.accounts:org", "Run a server", "Create organisations of the store."),
    "person": Entry("admin.accounts:person", "Run a server", "Create accounts of the store."),
    "client": Entry("admin.accounts:client", "Run a server", "Create OAuth clients."),
    "token": Entry("admin.accounts:token", "Run a server", "Issue bearer tokens for people."),
    "issuers": Entry("admin.accounts:issuers", "Run a server", "Manage the trusted identity providers."),
    "keys": Entry("admin.keys:keys", "Run a server", "Rotate the signing key, and manage the master keys."),
    "mail": Entry("server.mail:mail", "Run a server", "Show the e-mails in the outbox folder."),
    "webhooks": Entry("admin.webhooks:webhooks", "Run a server", "Manage webhooks, and replay deliveries."),
    "modules": Entry(
        "admin.records:modules", "Run a server", "List the modules of the records service, and upgrade their tables."
    ),
    "connect": Entry(
        "admin.connect_group:connect", "Run a server", "Write a module text for the tables of an existing database."
    ),
    "user": Entry("admin.records:user", "Run a server", "Create people of the records service."),
    "audit": Entry("admin.records:audit", "Run a server", "Verify the audit log of the records service."),
    "backup": Entry(
        "admin.backup:backup", "Run a server", "Write databases, files and keys into one encrypted archive."
    ),
    "restore": Entry("admin.restore:restore", "Run a server", "Make a data directory, or a database, from a backup."),
    "reset": Entry("admin.reset:reset", "Run a server", "Remove all that an installation has stored, once confirmed."),
    "verify": Entry("admin.verify:verify", "Run a server", "Check a backup or a data directory for damage."),
    "unpack": Entry("client.archive:unpack", "Work with files", "Unpack an archive; an unsafe archive is refused."),
    "login": Entry("client.login:login", "Use a server", "Sign in to a server by confirming in a browser."),
    "logout": Entry("client.login:logout", "Use a server", "Remove the saved login, and end its token at the server."),
    "whoami": Entry("client.login:whoami", "Use a server", "Show the account and the scopes of the token."),
    "push": Entry("client.push:push", "Use a server", "Upload a file or directory to a release; can be resumed."),
    "publish": Entry("client.push:publish", "Use a server", "Make a release public."),
    "codes": Entry("client.codes:codes", "Use a server", "Issue codes that customers redeem for products."),
    "redeem": Entry("client.codes:redeem", "Use a server", "Redeem a code, which adds its products to your library."),
    "library": Entry("client.codes:library", "Use a server", "List what you own."),
    "pull": Entry(
        "client.pull:pull", "Use a server", "Install, update or repair a folder; downloads only differences."
    ),
    "unpin": Entry("client.pull:unpin", "Use a server", "Forget a publisher's key that a pull pinned, once confirmed."),
    "download": Entry("client.download:download", "Use a server", "Download a release's file; can be resumed."),
    "api": Entry("client.api:api", "Use a server", "Call any operation of an API, and print the response."),
    "completion": Entry(
        "version_and_completion:completion", "About this program", "Print a completion script for bash, zsh or fish."
    ),
    "version": Entry(
        "version_and_completion:version",
        "About this program",
        "Print the versions of the program, databases, Python and SQLite.",
    ),
}


class Commands(click.Group):
    """The group of all commands. The module of a command is imported only when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which the help lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command with this name."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry.import_path.partition(":")
        # Imported modules stay in memory, so the garbage collector would find nothing.
        gc.disable()
        try:
            command: object = getattr(import_module(f"countersign.cli.{module}"), name)
        finally:
            gc.enable()
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry.import_path} is no command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the command as click does, and suggest similar names for a mistyped one."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from difflib import get_close_matches

            meant = " or ".join(f"'{close_match}'" for close_match in get_close_matches(args[0], COMMANDS))
            raise click.UsageError(f"No such command '{args[0]}'.{f' Did you mean {meant}?' if meant else ''}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings, without importing any command."""
        width = max(map(len, COMMANDS))
        for heading, entries in groupby(COMMANDS.items(), key=lambda item: item[1].heading):
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), entry.summary) for name, entry in entries])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="countersign")
@server_option
def commands() -> None:
    """Countersign: a store for releases, and business records where agents propose and people approve.

    The first group of commands works on the data directory of this machine, the second on files, and the third calls a
    server.
    Exit codes are listed in docs/reference/cli.md.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with one of the documented exit codes."""
    try:
        result: object = commands.main(args=arguments, prog_name="countersign", standalone_mode=False)
    except (click.ClickException, Failure) as failure:
        failure.show()
        sys.exit(failure.exit_code)
    except OSError as error:
        if not is_disk_full(error):
            raise
        output.discard_stdout()
        failure = output.disk_full_failure("the command cannot continue", error)
        failure.show()
        sys.exit(failure.exit_code)
    except click.Abort:
        click.echo("Interrupted.", err=True)
        sys.exit(Exit.INTERRUPTED)
    sys.exit(result if isinstance(result, int) else Exit.OK)


if __name__ == "__main__":
    main()
