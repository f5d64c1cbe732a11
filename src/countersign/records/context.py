"""What everything in the records service may reach: database, registry, keys and the operator's settings."""

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

    `root_url` has no trailing slash; `is_loopback` tells that it is reached from this machine alone; `versions` reads
    the number of access, `plan_version` that of the last change of a plan, neither ever older than the call; `bits`
    says by model which bit of a record's masks stands for which field (as installed, never reused); `secret` is 32
    random bytes of this database, kept sealed under the master key: token domains, the vault's hashes and the audit's
    chains derive their keys from it, so that changing the master key changes none of them.
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
