"""All settings: name, type, default, meaning and unit. The environment overrides the settings file, which overrides the
defaults."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

from countersign.file_access import explain_permission_error

PREFIX = "COUNTERSIGN_"
MAX_DAYS = 36_500
MAX_NUMBER = 2**31 - 1
MAX_MIB = 2**42


class BadSetting(Exception):
    """The value of a setting is invalid. The text names the setting and the remedy."""


class UnreadableSettingsFile(BadSetting):
    """A file with settings cannot be read. The text names the file, the reason and the operating-system user."""


def _setting(
    default: Any,
    meaning: str,
    unit: str = "",
    *,
    secret: bool = False,
    choices: tuple[str, ...] = (),
    max_value: int | None = None,
) -> Any:
    # A lifetime of 0 days would expire everything at once. A very long lifetime exceeds the timestamps of a database.
    min_value, default_max = {"days": (1, MAX_DAYS), "MiB": (0, MAX_MIB)}.get(unit, (0, MAX_NUMBER))
    metadata = {"meaning": meaning, "unit": unit, "secret": secret, "among": choices}
    metadata |= {"min_value": min_value, "max_value": max_value or default_max}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of all settings. `countersign config` prints them with their sources."""

    data: str = _setting("data", "Directory of databases, blobs, keys and locks.", "path")
    config: str = _setting(
        "",
        "TOML file with settings by lower-case name; default: countersign.toml in the data directory.",
        "path",
    )
    database_url: str = _setting(
        "",
        "URL of a PostgreSQL database: postgresql://… ; empty: SQLite files in the data directory.",
        "URL",
        secret=True,
    )
    existing_url: str = _setting(
        "",
        "URL of an existing database whose tables the models of a module text read: postgresql://… or sqlite:///… ; "
        "empty: none. With --try, `countersign serve records` takes the database URL if this is empty.",
        "URL",
        secret=True,
    )
    existing_read_only: bool = _setting(
        False,
        "Only read the existing database, even if tables of the module text are writable. `--try` has this effect.",
    )
    read_url: str = _setting(
        "",
        "URL of a streaming replica of the existing PostgreSQL database. Lists, searches, exports and counts of its "
        "tables are read there while it is at most 5 seconds behind; empty: none.",
        "URL",
        secret=True,
    )
    accept_wide_rights: bool = _setting(
        False,
        "For a trial: accept a role of the existing database that is a superuser, bypasses row-level security or owns "
        "tables, and that therefore reads rows which policies hide from others.",
    )
    database_pool: int = _setting(10, "Maximum number of PostgreSQL connections of one worker process.", "connections")
    read_deadline_s: int = _setting(5, "Maximum time that a search or scan may take in the database.", "seconds")
    storage_mib: int = _setting(
        0,
        "Maximum size of the SQLite database, and separately of the other files in the data directory; 0: no maximum.",
        "MiB",
    )
    reserve_mib: int = _setting(
        64, "Minimum free space of the data volume. With less, the service refuses writes with 507.", "MiB"
    )
    master_key: str = _setting(
        "",
        "Key that encrypts stored secrets: base64 of 32 bytes, or several keys as `id:base64,…`. The first key "
        "encrypts; all keys decrypt.",
        secret=True,
    )
    master_key_file: str = _setting("", "File that contains the master key, with mode 0600.", "path")
    blobs_url: str = _setting(
        "",
        "S3 bucket for blobs: s3://bucket/prefix?endpoint=…&region=… ; empty: a folder in the data directory.",
        "URL",
    )
    blobs_beneath: str = _setting(
        "",
        "Folder with the blobs of another store. The service also reads these blobs and never changes them; empty: "
        "none.",
        "path",
    )
    cdn_url: str = _setting(
        "", "Address of a CDN that serves the signed blob addresses of this service; empty: none.", "URL"
    )
    downloads: str = _setting(
        "proxy",
        "How customers download artifacts: `proxy` sends them through the service, `redirect` sends customers to a "
        "signed address of the blob storage or the CDN.",
        choices=("proxy", "redirect"),
    )
    signed_url_ttl_s: int = _setting(600, "How long a signed download address is valid.", "seconds")
    distribution_url: str = _setting(
        "",
        "Public address of the store without a trailing slash; empty: http://HOST:PORT of its listener.",
        "URL",
    )
    modules: str = _setting(
        "party,crm,billing,helpdesk",
        "Modules of the records service, separated by commas. A name that ends in .py is the path of a module text.",
    )
    records_url: str = _setting(
        "",
        "Public address of the records service without a trailing slash; empty: http://HOST:PORT of its listener.",
        "URL",
    )
    demo_activity: bool = _setting(
        True,
        "With --demo: also create recent data, such as dates around today, payments, tickets in progress, proposals of "
        "agents, a signed build, and products, collections, downloads and follows of the store's demonstration player.",
    )
    mcp_2026: bool = _setting(False, "Offer revision 2026-07-28 of MCP in addition to the three earlier revisions.")
    counters_url: str = _setting(
        "",
        "Redis or Valkey server for rate limits that several nodes share: redis://… ; empty: each node counts in its "
        "own memory.",
        "URL",
        secret=True,
    )
    trusted_proxies: str = _setting(
        "",
        "Addresses and networks of proxies whose headers X-Forwarded-For and traceparent are trusted, comma-separated.",
    )
    rate_anonymous: int = _setting(
        120, "Maximum number of requests without credentials from one IP address.", "per minute"
    )
    rate_community: int = _setting(600, "Maximum number of requests with one community key.", "per minute")
    rate_agent: int = _setting(1200, "Maximum number of requests with one agent key.", "per minute")
    rate_documents: int = _setting(
        600,
        "Maximum number of requests for documents, problem pages and public keys from one IP address. Other limits do "
        "not count these requests.",
        "per minute",
    )
    rate_keys: int = _setting(5, "Maximum number of keys that one IP address may create.", "per hour")
    key_days: int = _setting(30, "How long a key that is not used remains valid.", "days")
    rate_person: int = _setting(1200, "Maximum number of requests of one person or OAuth client.", "per minute")
    rate_token: int = _setting(60, "Maximum number of sign-ins and token requests from one IP address.", "per minute")
    rate_register: int = _setting(
        0,
        "Maximum number of agents that may register from one IP address, or for one e-mail address; 0: 20 anonymous, "
        "20 by e-mail (5 for one e-mail address) and 60 by assertion. The same maximum applies to OAuth clients that "
        "register themselves; 0: 20.",
        "per hour",
    )
    register_anonymous_all: int = _setting(
        100, "Maximum number of anonymous agents that may register from all IP addresses together.", "per hour"
    )
    register_named_all: int = _setting(
        1000,
        "Maximum number of agents that may register by e-mail or assertion from all IP addresses together.",
        "per hour",
    )
    code_failures_person: int = _setting(
        10, "Number of wrong redeem codes after which one person gets the status 429.", "per 10 minutes"
    )
    code_failures_address: int = _setting(
        50, "Number of wrong redeem codes after which one IP address gets the status 429.", "per 10 minutes"
    )
    token_ttl_s: int = _setting(86400, "How long an access token is valid, at most a day.", "seconds", max_value=86400)
    session_ttl_s: int = _setting(1209600, "How long a session is valid after sign-in.", "seconds")
    agents_anonymous: bool = _setting(True, "Let agents register without a person.")
    agents_by_email: bool = _setting(
        True, "Let agents register with the e-mail address of a person, who must confirm the registration."
    )
    dynamic_clients: bool = _setting(
        True,
        "Let OAuth clients such as MCP clients register themselves (RFC 7591); false: clients that registered "
        "themselves get no new tokens.",
    )
    dynamic_client_days: int = _setting(
        180, "How long an OAuth client that registered itself is kept if it is not used.", "days"
    )
    assertion_ttl_s: int = _setting(
        3600,
        "How long the assertion that an agent exchanges for access tokens is valid, at most a day.",
        "seconds",
        max_value=86400,
    )
    claim_ttl_s: int = _setting(86400, "How long after its registration a person may claim an agent.", "seconds")
    attempt_ttl_s: int = _setting(
        600, "How long a claim link and its code are valid, at most a day.", "seconds", max_value=86400
    )
    poll_interval_s: int = _setting(
        5, "Minimum time between two requests of an agent that asks whether it is claimed.", "seconds", max_value=86400
    )
    claim_grant: str = _setting(
        "urn:workos:agent-auth:grant-type:claim",
        "OAuth grant type with which an agent asks whether it is claimed.",
        "URN",
    )
    revoked_event: str = _setting(
        "https://schemas.workos.com/events/agent/auth/identity/assertion/revoked",
        "Type of the security event with which an identity provider revokes an assertion.",
        "URI",
    )
    private_issuers: bool = _setting(
        False,
        "For tests: also fetch keys of trusted identity providers from private and loopback addresses and over http.",
    )
    resource_name: str = _setting("Countersign", "Name of the store in metadata, in auth.md and on pages.")
    security_contact: str = _setting(
        "",
        "Contacts for security reports: e-mail or web addresses for security.txt, separated by commas; empty: no file.",
    )
    smtp_url: str = _setting(
        "",
        "Mail server: smtp://user:password@host:port or smtps://… ; `discard:`: send no mail; empty: write mail to the "
        "outbox folder.",
        "URL",
        secret=True,
    )
    mail_from: str = _setting("Countersign <no-reply@localhost>", "Sender of all e-mail.")
    mail_link_ttl_s: int = _setting(3600, "How long a link in an e-mail is valid.", "seconds")
    private_webhooks: bool = _setting(
        False, "For private networks: also send webhooks to private and loopback addresses and over http."
    )
    webhook_days: int = _setting(14, "How long a completed webhook delivery is kept.", "days")
    seen_value_days: int = _setting(
        30,
        "How long a personal value of a connected database that no record has any more can still be read in the audit, "
        "the history and plans; 0: until the next daily check.",
        "days",
    )
    plan_letter_s: int = _setting(
        300,
        "Delay between the first pending plan and the e-mail to its approvers, and between a mention and its e-mail; "
        "0: no e-mail.",
        "seconds",
    )
    upload_ttl_s: int = _setting(86400, "How long an incomplete upload is kept.", "seconds")
    artifact_max_mib: int = _setting(204800, "Maximum size of an artifact.", "MiB")
    archive_entries: int = _setting(250_000, "Maximum number of entries of one archive.", "entries")
    archive_depth: int = _setting(64, "Maximum number of folders above an entry.", "folders")
    archive_name_bytes: int = _setting(255, "Maximum length of the file name of an entry.", "bytes")
    archive_path_bytes: int = _setting(1024, "Maximum length of the path of an entry.", "bytes")
    archive_total_mib: int = _setting(204800, "Maximum unpacked size of one archive.", "MiB")
    archive_ratio: int = _setting(200, "Maximum number of unpacked bytes per byte of an archive.", "times")
    archive_ratio_after_mib: int = _setting(64, "Unpacked size below which the ratio is not checked.", "MiB")
    archive_seconds: int = _setting(3600, "Maximum time for reading one archive.", "seconds")
    archive_memory_mib: int = _setting(1024, "Memory limit of the process that reads an archive.", "MiB")
    archive_profile: str = _setting(
        "strict",
        "`strict`, or `compatible`, which also accepts unusual but harmless archives.",
        choices=("strict", "compatible"),
    )
    job_workers: int = _setting(
        2, "Number of processes that `serve` starts to run jobs; 0: only `countersign worker` runs jobs."
    )
    job_engine: str = _setting(
        "auto",
        "Job queue: `embedded` (leases in the job table), `procrastinate` (only with PostgreSQL), or `auto`: "
        "procrastinate with PostgreSQL, embedded with SQLite.",
        choices=("auto", "embedded", "procrastinate"),
    )
    jobs_running: int = _setting(
        4, "Maximum number of jobs of one organisation that run at the same time. Its background jobs are counted "
        "separately, with the same maximum.", "jobs"
    )
    jobs_queued: int = _setting(1000, "Maximum number of jobs of one organisation that wait.", "jobs")
    job_attempts: int = _setting(3, "Number of attempts after which a job fails.", "attempts")
    job_lease_s: int = _setting(15, "A worker that sends no heartbeat for this long loses its job.", "seconds")
    job_seconds: int = _setting(7200, "Maximum time of one attempt.", "seconds")
    job_memory_mib: int = _setting(4096, "Memory limit of a process that runs jobs.", "MiB")
    job_nice: int = _setting(10, "Niceness of job processes, 0 to 19.")
    job_days: int = _setting(30, "How long a completed job is kept.", "days")
    sandboxes: int = _setting(
        100, "Maximum number of sandbox data sets that this node keeps at the same time; 0: no sandbox.", "data sets"
    )
    sandbox_mib: int = _setting(256, "Maximum size of one sandbox data set.", "MiB")
    sandbox_idle_s: int = _setting(3600, "How long a sandbox data set is kept if it is not used.", "seconds")
    statement_ttl_s: int = _setting(
        1209600, "How long the signed statement of a channel's current build is valid.", "seconds"
    )
    delta_history: int = _setting(
        3, "Number of earlier builds for which updates to a new build are prepared.", "builds"
    )
    delta_group_mib: int = _setting(
        256, "Maximum size of the contents that are compared at the same time when an update is prepared.", "MiB"
    )
    ask_model_url: str = _setting(
        "",
        "Base address (`…/v1`) of an OpenAI-compatible model that helps to answer questions; empty: rules answer "
        "without a model.",
        "URL",
    )
    ask_model: str = _setting("", "Name of the model at ASK_MODEL_URL.")
    ask_model_key: str = _setting("", "API key for the model at ASK_MODEL_URL.", secret=True)
    ask_model_seconds: int = _setting(
        5, "Maximum time to wait for the model. After this time, rules answer without the model.", "seconds"
    )
    page_cache_mib: int = _setting(64, "Memory for encoded catalog pages in each worker.", "MiB")
    catalog_max_age_s: int = _setting(5, "How long caches may keep a public catalog response.", "seconds")
    plan_ttl_s: int = _setting(604800, "How long a proposed plan can be approved before it expires.", "seconds")
    header_deadline_s: int = _setting(5, "Maximum time for a client to send the header of a request.", "seconds")
    idle_deadline_s: int = _setting(15, "How long an idle connection stays open.", "seconds")
    body_grace_s: int = _setting(
        10, "Time that a client may take for a request body before the minimum rate applies.", "seconds"
    )
    body_rate_kib_s: int = _setting(64, "Minimum rate of a request body after BODY_GRACE_S.", "KiB/s")
    grace_s: int = _setting(5, "Maximum time for running requests to end when the service stops.", "seconds")
    watchdog_s: int = _setting(
        10, "A server process whose event loop is blocked for this long is replaced; 0: never.", "seconds"
    )
    operator_port: int = _setting(0, "Port for the operator: /livez, /readyz, /metrics; 0: none.")
    operator_host: str = _setting(
        "127.0.0.1", "Address at which OPERATOR_PORT listens. The port requires no authentication."
    )
    otlp_url: str = _setting(
        "",
        "Base address of a trace collector (OTLP over HTTP), such as http://127.0.0.1:4318; empty: no traces.",
        "URL",
        secret=True,
    )
    log_level: str = _setting("info", "Minimum log level: debug, info, warning, error.")
    log_requests: bool = _setting(False, "Log a line for every request.")


@dataclass(frozen=True, slots=True)
class SettingValue:
    """One setting as `countersign config` prints it. `shown` is the value, or a note for a secret."""

    variable: str
    shown: str
    source: str
    default: str
    unit: str
    meaning: str
    is_secret: bool = False


def load(environment: Mapping[str, str], **overrides: object) -> Settings:
    """Return the settings. The values of `overrides` (the command line) override the environment, which overrides the
    settings file, which overrides the defaults. None and empty strings count as unset.

    Raises:
        BadSetting: a value has the wrong type, is out of range or is not one of the choices, or the file cannot be read
            or contains an unknown setting.
    """
    return _resolve(environment, overrides)[0]


def explain(environment: Mapping[str, str], **overrides: object) -> list[SettingValue]:
    """Return every setting with its value and its source.

    Raises:
        BadSetting: as `load`.
    """
    settings, sources = _resolve(environment, overrides)
    lines: list[SettingValue] = []
    for item in fields(settings):
        value = getattr(settings, item.name)
        is_hidden = item.metadata["secret"] and value
        lines.append(
            SettingValue(
                PREFIX + item.name.upper(),
                "(set, not shown)" if is_hidden else str(value),
                sources[item.name],
                str(item.default),
                item.metadata["unit"],
                item.metadata["meaning"],
                is_secret=item.metadata["secret"],
            )
        )
    return lines


_Layers: TypeAlias = list[tuple[str, Mapping[str, object]]]


def _resolve(environment: Mapping[str, str], overrides: Mapping[str, object]) -> tuple[Settings, dict[str, str]]:
    layers = _layers(environment, overrides)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for item in fields(Settings):
        source = next(((label, layer[item.name]) for label, layer in layers if item.name in layer), None)
        sources[item.name] = source[0] if source else "default"
        if source:
            values[item.name] = _convert(item.name, source[1], item.default)
            _require_choice(item.name, values[item.name], item.metadata["among"])
            _require_bounds(item.name, values[item.name], item.metadata["min_value"], item.metadata["max_value"])
    return Settings(**values), sources


def _layers(environment: Mapping[str, str], overrides: Mapping[str, object]) -> _Layers:
    """Return the sources of values with their labels, in order of precedence."""
    variables = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and value
    }
    layers: _Layers = [
        ("command line", _set(overrides)),
        ("environment", variables),
        ("environment's file", _secrets_in_files(variables)),
    ]
    path, must_exist = _file_path(layers)
    from_file = _read_file(path, must_exist=must_exist)
    unknown_names = sorted(set(from_file) - {item.name for item in fields(Settings)})
    if unknown_names:
        raise BadSetting(f"{path}: no setting is called {unknown_names[0]}; `countersign config` lists them all")
    return [*layers, (f"file {path}", _set(from_file))]


def _set(values: Mapping[str, object]) -> dict[str, object]:
    """Return the values without None and empty strings, which count as unset in every source."""
    return {name: value for name, value in values.items() if value is not None and value != ""}


def file_variables() -> frozenset[str]:
    """Return the names of the variables `…_FILE`. Each contains the path of a file with the value of a secret setting,
    for orchestrators that mount secrets as files."""
    names = {item.name for item in fields(Settings)}
    secret = (item.name for item in fields(Settings) if item.metadata["secret"])
    return frozenset(f"{PREFIX}{name.upper()}_FILE" for name in secret if f"{name}_file" not in names)


def _secrets_in_files(variables: Mapping[str, str]) -> dict[str, object]:
    secrets_found: dict[str, object] = {}
    for variable in file_variables():
        name = variable.removeprefix(PREFIX).removesuffix("_FILE").lower()
        path = variables.get(f"{name}_file")
        if not path:
            continue
        if name in variables:
            raise BadSetting(f"{PREFIX}{name.upper()} and {variable} are both set; remove one of them")
        try:
            text = Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise UnreadableSettingsFile(f"{variable}: {explain_permission_error(Path(path), error)}") from error
        except UnicodeDecodeError as error:
            raise BadSetting(f"{variable}: {path} is not UTF-8 text") from error
        if not text:
            # Without this check, a service would start with an empty SQLite database until its database URL is written.
            raise BadSetting(f"{variable}: {path} is empty; write the value into it, or remove the variable")
        secrets_found[name] = text
    return secrets_found


def _file_path(layers: _Layers) -> tuple[Path, bool]:
    """Return the path of the settings file, and whether the file must exist because a setting names it."""
    for _, layer in layers:
        if layer.get("config"):
            return Path(str(layer["config"])), True
    data = next(
        (layer["data"] for _, layer in layers if layer.get("data")),
        Settings.__dataclass_fields__["data"].default,
    )
    return Path(str(data)) / "countersign.toml", False


def _read_file(path: Path, *, must_exist: bool) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if must_exist:
            raise BadSetting(f"{path}: no such file; correct COUNTERSIGN_CONFIG") from error
        return {}
    except OSError as error:
        raise UnreadableSettingsFile(explain_permission_error(path, error)) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSetting(f"{path}: cannot be read as TOML: {error}") from error


def _require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if choices and value not in choices:
        raise BadSetting(f"{PREFIX}{name.upper()} must be {' or '.join(choices)}, not {value!r}")


def _require_bounds(name: str, value: object, min_value: int, max_value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        return
    if value > max_value:
        raise BadSetting(f"{PREFIX}{name.upper()} must be {max_value} at most, not {value}")
    if value < min_value:
        raise BadSetting(f"{PREFIX}{name.upper()} must be {min_value} at least, not {value}")


def _convert(name: str, value: object, default: object) -> object:
    """The value, converted to the type of the default."""
    variable = PREFIX + name.upper()
    if isinstance(default, bool):
        text = str(value).strip().lower()
        if text in ("1", "true", "yes", "on"):
            return True
        if text in ("0", "false", "no", "off"):
            return False
        raise BadSetting(f"{variable} must be true or false, not {value!r}")
    if isinstance(default, int):
        try:
            number = int(str(value))
        except ValueError as error:
            raise BadSetting(f"{variable} must be a whole number, not {value!r}") from error
        if number < 0:
            raise BadSetting(f"{variable} must not be negative")
        return number
    return str(value)
