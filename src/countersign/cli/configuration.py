"""`countersign config`: print every setting with its meaning, its value and the source of the value."""

import os
from typing import NamedTuple

import click

from countersign import settings
from countersign.cli import output
from countersign.cli.options import DEFAULT_SERVER, SERVER_VARIABLE

HIDDEN = "(set, not shown)"


class ClientVariable(NamedTuple):
    """An environment variable of the commands that call a server. These variables have no entry in a settings file."""

    name: str
    default: str
    meaning: str
    is_secret: bool = False


CLIENT_VARIABLES = (
    ClientVariable(SERVER_VARIABLE, DEFAULT_SERVER, "Address of the store that client commands talk to."),
    ClientVariable("COUNTERSIGN_TOKEN", "", "Bearer token of client commands, before other credentials.", True),
    ClientVariable("COUNTERSIGN_CLIENT_ID", "", "OAuth client of client commands, exchanged for a token."),
    ClientVariable("COUNTERSIGN_CLIENT_SECRET", "", "Secret of that client.", True),
    ClientVariable("COUNTERSIGN_BACKUP_PASSPHRASE", "", "Passphrase of `backup`, `restore` and `verify`.", True),
)


def load(**options: object) -> settings.Settings:
    """Load the settings of this process. Arguments from the command line take precedence, unless they are None.

    Raises:
        Failure: a setting cannot be used, or the database URL is that of an existing database of the modules.
    """
    loaded = load_unchecked(**options)
    require_own_database(loaded)
    return loaded


def load_unchecked(**options: object) -> settings.Settings:
    """Load the settings like `load`, for a command that opens no tables of ours, or that calls `require_own_database`.

    Raises:
        Failure: a setting cannot be used.
    """
    try:
        return settings.load(os.environ, **options)
    except settings.BadSetting as error:
        raise _setting_failure(error) from error


def require_own_database(loaded: settings.Settings) -> None:
    """Check that the database URL is not that of an existing database, whose tables the modules read.

    Raises:
        Failure: our own tables would be created in the existing database.
    """
    if not loaded.database_url or not loaded.modules:
        return
    # Import this late, because most commands do not need it.
    from countersign.records import own_database

    try:
        own_database.require_separate_for_texts(loaded)
    except settings.BadSetting as error:
        raise _setting_failure(error) from error


def _setting_failure(error: settings.BadSetting) -> output.Failure:
    remedy = "Correct the setting; `countersign config` explains every setting."
    if isinstance(error, settings.UnreadableSettingsFile):
        remedy = "Allow this user to read the file, or choose another with --data or COUNTERSIGN_CONFIG."
    return output.Failure("a setting cannot be used", why=str(error), remedy=remedy, exit_code=output.Exit.USAGE)


@click.command()
@click.option("--data", metavar="DIR", help="Data directory, whose countersign.toml is read.")
@output.json_option
def config(data: str | None) -> None:
    """Explain every setting: its value, the source of the value, and its default, unit and meaning.

    The command line takes precedence over the environment, the environment over the settings file, and the file over
    the default. The file is countersign.toml in the data directory, or the file that COUNTERSIGN_CONFIG names. Its
    names are the names of the variables in lower case, without COUNTERSIGN_.
    """
    try:
        setting_values = settings.explain(os.environ, data=data)
    except settings.BadSetting as error:
        raise _setting_failure(error) from error
    setting_values += [_explained(variable) for variable in CLIENT_VARIABLES]
    if output.wants_json():
        output.print_result({"settings": [_as_json(setting) for setting in setting_values]})
        return
    for setting in setting_values:
        click.echo(output.clean(_as_text(setting)))


def _explained(variable: ClientVariable) -> settings.SettingValue:
    value = os.environ.get(variable.name, "")
    shown_value = HIDDEN if value and variable.is_secret else value or variable.default
    source = "environment" if value else "default"
    return settings.SettingValue(variable.name, shown_value, source, variable.default, "", variable.meaning)


def _as_json(setting: settings.SettingValue) -> dict[str, str]:
    return {
        "variable": setting.variable,
        "value": setting.shown,
        "source": setting.source,
        "default": setting.default,
        "unit": setting.unit,
        "meaning": setting.meaning,
    }


def _as_text(setting: settings.SettingValue) -> str:
    default = "" if setting.source == "default" else f"; default {setting.default or 'empty'}"
    unit = f" [{setting.unit}]" if setting.unit else ""
    return (
        f"{setting.variable} = {setting.shown or '(empty)'}{unit}   ({setting.source}{default})\n    {setting.meaning}"
    )
