"""The context of every handler of the store: database, blobs, keys, limits, settings, and the last uses of grants."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from countersign.kernel import clock
from countersign.kernel.blobs.port import BlobStore
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database
from countersign.kernel.http.rate_limit import Counters
from countersign.kernel.jobs.engine import Engine
from countersign.kernel.mail.queue import MailQueue
from countersign.kernel.security.encryption import Signer
from countersign.kernel.security.external_jwt import JwksCache
from countersign.kernel.security.jose import AccessTokens
from countersign.kernel.security.masterkey import MasterKey
from countersign.settings import Settings

MAX_GRANTS = 100_000


class LastUses:
    """The last use of each grant (registration, consent, API key or session) in one worker, since the last `take`. A
    worker that is killed loses these uses, which are informational only."""

    def __init__(self) -> None:
        self._uses: dict[str, Instant] = {}

    def note(self, grant_id: str) -> None:
        """Record a use of the grant now."""
        if grant_id in self._uses or len(self._uses) < MAX_GRANTS:
            self._uses[grant_id] = clock.now()

    def last(self, grant_id: str) -> Instant | None:
        """The last use that is not recorded in the database yet, if this worker saw one."""
        return self._uses.get(grant_id)

    def take(self) -> dict[str, Instant]:
        """The uses since the last call, to be recorded."""
        uses, self._uses = self._uses, {}
        return uses


class CachedObject(Protocol):
    """An object that a worker caches for a store. It is created from the store's database at its first use."""

    def __init__(self, database: Database) -> None: ...


CachedT = TypeVar("CachedT", bound=CachedObject)


class WorkerMemory:
    """The objects that one worker keeps in memory for a store, one for each type. They read the store's own database,
    so that they never contain uncommitted changes of an atomic batch."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._cached: dict[type, Any] = {}

    def get(self, kind: type[CachedT]) -> CachedT:
        """The object of this type."""
        cached_value: CachedT | None = self._cached.get(kind)
        if cached_value is None:
            cached_value = self._cached[kind] = kind(self.database)
        return cached_value


PREFIX = "/api/v1"
VERSIONS = ("catalog", "identity")
"""The version counters, in the order in which `Store.versions` returns them."""


@dataclass(frozen=True, slots=True)
class Store:
    """One running store. `root_url` has no trailing slash. `is_loopback` is true if only this machine can reach the
    store. `versions` reads the change counters of catalog and identity; the values are never older than the call.

    `cursors` signs page cursors, `addresses` signs addresses and forms, and `codes` signs typed codes. `key_sets`
    caches the keys of trusted issuers. `token_hint` explains to callers without a credential how to obtain a token; if
    it is empty, a general hint is used. `problems_url` is the base address of problem pages, and `capability_url` is
    the base address of links that work without a token. Both are empty if they do not differ from `root_url`."""

    settings: Settings
    root_url: str
    is_loopback: bool
    database: Database
    blobs: BlobStore
    counters: Counters
    mail: MailQueue
    versions: Callable[[], Awaitable[tuple[int, ...]]]
    master: MasterKey
    tokens: AccessTokens
    cursors: Signer
    addresses: Signer
    codes: Signer
    key_sets: JwksCache
    uses: LastUses
    jobs: Engine
    memory: WorkerMemory
    token_hint: str = ""
    problems_url: str = ""
    capability_url: str = ""

    @property
    def base_url(self) -> str:
        """The address of the versioned API."""
        return self.root_url + PREFIX

    @property
    def capability_base_url(self) -> str:
        """The address of the versioned API in addresses that work without a token: of uploads and signed downloads."""
        return (self.capability_url or self.root_url) + PREFIX

    @property
    def problems_root(self) -> str:
        """The address below which every problem has its page."""
        return self.problems_url or self.root_url
