"""The shared context of the records service: the database, the registry, the keys and the operator's settings."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from countersign.declare.registry import Registry
from countersign.kernel.database.port import Database
from countersign.kernel.mail.transports import Mail
from countersign.kernel.security.masterkey import MasterKey
from countersign.settings import Settings

PREFIX = "/api"


@dataclass(frozen=True, slots=True)
class Records:
    """A running records service.

    `root_url` has no trailing slash. `is_loopback` is true if the service is reachable only from this machine.
    `versions` reads the version number of access rights, and `plan_version` the number of the last change of a plan.
    Both include every change that was committed before the call.

    `bits` maps each model to its fields, and each field to its bit in the masks of records. The bits are read from the
    installed schema, and no bit is ever reused.

    `secret` consists of 32 random bytes that belong to this database and are stored encrypted with the master key. The
    keys of token domains, of the vault's hashes and of the audit's chains are derived from the secret, so that they do
    not change with the master key.
    """

    settings: Settings
    root_url: str
    is_loopback: bool
    database: Database
    registry: Registry
    bits: Mapping[str, Mapping[str, int]]
    master: MasterKey
    secret: bytes
    mail: Mail
    versions: Callable[[], Awaitable[tuple[int, ...]]]
    plan_version: Callable[[], Awaitable[tuple[int, ...]]]
