"""What every handler of the store can use: database, blobs, keys, limits, settings, and the last use of grants."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

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
    """The last use of each grant since they were last taken, in one worker. What a kill loses is no more than the
    time between two writings: the moment is for a person to look at, not to decide by."""

    def __init__(self) -> None:
        self._uses: dict[str, Instant] = {}

    def note(self, grant_id: str) -> None:
        """The grant is used now."""
        if grant_id in self._uses or len(self._uses) < MAX_GRANTS:
            self._uses[grant_id] = clock.now()

    def last(self, grant_id: str) -> Instant | None:
        """The last use that is not written down yet, if this worker saw one."""
        return self._uses.get(grant_id)

    def take(self) -> dict[str, Instant]:
        """What was noted since the last call, to be written down."""
        uses, self._uses = self._uses, {}
        return uses


PREFIX = "/api/v1"
VERSIONS = ("catalog", "identity")
"""What is counted when it changes, in the order of the numbers that `Store.versions` reads."""


@dataclass(frozen=True, slots=True)
class Store:
    """One running store. `root_url` has no trailing slash; `is_loopback` tells that it is reached from this
    machine alone; `versions` reads the counters of catalog and identity, never older than the call. Of the signers,
    `cursors` signs page cursors, `addresses` signed addresses and forms, `codes` what people type. `key_sets`
    keeps the keys of trusted issuers. `way_in` is what a caller without a credential is told to do, where that is not
    to obtain a token; `problems_url` where the pages of problems are, `capability_url` where addresses begin that work
    without a token, where that is not `root_url`."""

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
    way_in: str = ""
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
