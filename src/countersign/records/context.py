"""The shared context of the records service: database, registry, keys and the operator's settings."""

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
    """One running records service.

    `root_url` has no trailing slash; `is_loopback` is true if the service is reachable only from this machine;
    `versions` reads the version number of access rights, `plan_version` that of the last change of a plan, both at
    least as new as the call; `bits` maps, by model, each field to its bit in the masks of records (as installed, never
    reused); `secret` is 32 random bytes of this database, sealed under the master key: the keys of token domains, the
    vault's hashes and the audit's chains are derived from it, so that they do not change with the master key.
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
