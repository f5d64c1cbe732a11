"""The value of a setting comes from the command line, the environment, the file or the default, in this order. Invalid
values are refused."""

from dataclasses import Field, fields
from pathlib import Path

import pytest

from countersign import settings
from countersign.settings import BadSetting, Settings, explain, load


def test_the_defaults_apply_without_any_setting(tmp_path: Path) -> None:
    loaded_settings = load({}, data=str(tmp_path))

    assert loaded_settings == Settings(data=str(tmp_path))


def test_the_command_line_wins_over_environment_over_file(tmp_path: Path) -> None:
    (tmp_path / "countersign.toml").write_text("rate_token = 1\nrate_person = 1\nrate_anonymous = 1\n")
    environment = {"COUNTERSIGN_RATE_PERSON": "2", "COUNTERSIGN_RATE_ANONYMOUS": "2"}

    loaded_settings = load(environment, data=str(tmp_path), rate_anonymous=3)

    assert (loaded_settings.rate_token, loaded_settings.rate_person, loaded_settings.rate_anonymous) == (1, 2, 3)


def test_the_file_may_be_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text("log_requests = true\n")

    assert load({"COUNTERSIGN_CONFIG": str(file)}).log_requests is True


@pytest.mark.parametrize("item", fields(Settings), ids=lambda item: item.name)
def test_an_empty_setting_is_unset_in_every_source(tmp_path: Path, item: Field[object]) -> None:
    (tmp_path / "countersign.toml").write_text(f'{item.name} = ""\n')
    variable = f"COUNTERSIGN_{item.name.upper()}"
    file_settings = {"data": str(tmp_path)} if item.name != "data" else {"config": str(tmp_path / "countersign.toml")}

    loaded_settings = load({variable: "", f"{variable}_FILE": ""}, **{item.name: "", **file_settings})
    explained = {setting.variable: setting for setting in explain({variable: ""}, **file_settings)}

    assert loaded_settings == Settings(**file_settings)
    if item.name not in file_settings:
        assert explained[variable].source == "default"


def test_an_empty_variable_falls_back_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "countersign.toml").write_text('rate_token = 1\ndatabase_url = ""\n')
    secret = tmp_path / "url"
    secret.write_text("postgresql://db/countersign\n")
    environment = {
        "COUNTERSIGN_RATE_TOKEN": "",
        "COUNTERSIGN_DATABASE_URL": "",
        "COUNTERSIGN_DATABASE_URL_FILE": str(secret),
    }

    loaded_settings = load(environment, data=str(tmp_path))

    assert (loaded_settings.rate_token, loaded_settings.database_url) == (1, "postgresql://db/countersign")


NUMBERS = [item for item in fields(Settings) if type(item.default) is int]


@pytest.mark.parametrize("item", NUMBERS, ids=lambda item: item.name)
def test_every_number_has_bounds(tmp_path: Path, item: Field[int]) -> None:
    """Without a maximum, a number of days could exceed the timestamps that a database can store."""
    name = f"COUNTERSIGN_{item.name.upper()}"

    with pytest.raises(BadSetting, match=f"{name} must be \\d+ at most"):
        load({name: "9" * 30}, data=str(tmp_path))
    if item.metadata["unit"] == "days":
        with pytest.raises(BadSetting, match=f"{name} must be 1 at least, not 0"):
            load({name: "0"}, data=str(tmp_path))
    assert getattr(load({name: str(item.metadata["max_value"])}, data=str(tmp_path)), item.name) > 0


@pytest.mark.parametrize("name", ["token_ttl_s", "assertion_ttl_s", "attempt_ttl_s", "poll_interval_s"])
def test_a_number_above_its_bound_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadSetting, match=f"COUNTERSIGN_{name.upper()} must be 86400 at most, not 86401"):
        load({f"COUNTERSIGN_{name.upper()}": "86401"}, data=str(tmp_path))


@pytest.mark.parametrize("yes_word", ["1", "true", "YES", "on"])
def test_yes_has_several_spellings(yes_word: str) -> None:
    assert load({"COUNTERSIGN_LOG_REQUESTS": yes_word}).log_requests is True


@pytest.mark.parametrize(
    ("environment", "named_variable"),
    [
        ({"COUNTERSIGN_RATE_PERSON": "many"}, "COUNTERSIGN_RATE_PERSON"),
        ({"COUNTERSIGN_RATE_PERSON": "-1"}, "COUNTERSIGN_RATE_PERSON"),
        ({"COUNTERSIGN_LOG_REQUESTS": "perhaps"}, "COUNTERSIGN_LOG_REQUESTS"),
        ({"COUNTERSIGN_CONFIG": "nowhere.toml"}, "nowhere.toml"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(environment: dict[str, str], named_variable: str) -> None:
    with pytest.raises(BadSetting, match=named_variable):
        load(environment)


def test_an_unknown_name_in_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "countersign.toml").write_text("rate_persons = 1\n")

    with pytest.raises(BadSetting, match="rate_persons"):
        load({}, data=str(tmp_path))


def test_a_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "countersign.toml").write_text("rate_person: 1\n")

    with pytest.raises(BadSetting, match="TOML"):
        load({}, data=str(tmp_path))


def test_every_setting_is_explained_with_its_source_and_no_secret_is_shown() -> None:
    environment = {
        "COUNTERSIGN_MASTER_KEY": "very secret",
        "COUNTERSIGN_DATABASE_URL": "postgresql://me:hidden@127.0.0.1/db",
        "COUNTERSIGN_RATE_PERSON": "7",
    }

    lines = {line.variable: line for line in explain(environment)}

    assert len(lines) == len(fields(Settings))
    assert lines["COUNTERSIGN_RATE_PERSON"].shown == "7"
    assert lines["COUNTERSIGN_RATE_PERSON"].source == "environment"
    assert lines["COUNTERSIGN_RATE_TOKEN"].source == "default"
    assert all(line.meaning for line in lines.values())
    all_values = " ".join(line.shown for line in lines.values())
    assert "very secret" not in all_values
    assert "hidden" not in all_values


def test_every_setting_has_an_effect() -> None:
    source = Path(settings.__file__).parent
    texts = [path.read_text() for path in source.rglob("*.py") if path.name != "settings.py"]
    # `config` is the path of the settings file, which settings.py itself reads.
    unused = [
        item.name for item in fields(Settings) if item.name != "config" and not any(item.name in t for t in texts)
    ]

    assert unused == []


def test_an_unknown_value_of_a_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="COUNTERSIGN_DOWNLOADS must be proxy or redirect, not 'redirct'"):
        load({"COUNTERSIGN_DOWNLOADS": "redirct"}, data=str(tmp_path))


def test_a_secret_may_be_in_a_file_that_the_environment_names(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://countersign:hush@db/countersign\n")

    loaded_settings = load({"COUNTERSIGN_DATABASE_URL_FILE": str(file)}, data=str(tmp_path))
    lines = {setting.variable: setting for setting in explain({"COUNTERSIGN_DATABASE_URL_FILE": str(file)})}

    assert loaded_settings.database_url == "postgresql://countersign:hush@db/countersign"
    assert lines["COUNTERSIGN_DATABASE_URL"].source == "environment's file"
    assert "hush" not in lines["COUNTERSIGN_DATABASE_URL"].shown


@pytest.mark.parametrize(
    ("environment", "named_variable"),
    [
        ({"COUNTERSIGN_SMTP_URL_FILE": "missing"}, "COUNTERSIGN_SMTP_URL_FILE: missing cannot be read as the user "),
        (
            {"COUNTERSIGN_SMTP_URL_FILE": "missing", "COUNTERSIGN_SMTP_URL": "discard:"},
            "COUNTERSIGN_SMTP_URL and COUNTERSIGN_SMTP_URL_FILE are both set",
        ),
    ],
)
def test_a_secret_that_cannot_be_read_or_is_given_twice_is_refused(
    environment: dict[str, str], named_variable: str
) -> None:
    with pytest.raises(BadSetting) as refusal:
        load(environment)

    assert named_variable in str(refusal.value)


def test_an_empty_secret_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("\n")

    with pytest.raises(BadSetting, match="is empty"):
        load({"COUNTERSIGN_DATABASE_URL_FILE": str(file)})


def test_only_secrets_are_read_from_files(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("https://store.example.com")

    assert load({"COUNTERSIGN_DISTRIBUTION_URL_FILE": str(file)}).distribution_url == ""
