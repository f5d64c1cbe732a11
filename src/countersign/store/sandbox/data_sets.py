"""The data sets that this process has open. A data set is a separate store with its own owner, for one key or one
anonymous address. A data set is opened when a request needs it."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ParamSpec, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from countersign.kernel import clock
from countersign.kernel.blobs.disk import Descriptor
from countersign.kernel.concurrency import periodic
from countersign.kernel.errors import Unavailable
from countersign.kernel.http.request import ASGIApp
from countersign.settings import Settings
from countersign.store.auth import organisations, people, queries, tokens
from countersign.store.context import PREFIX, Store
from countersign.store.sandbox import folders, workers
from countersign.store.sandbox.folders import DataSetTemplate
from countersign.store.sandbox.workers import NotifyingEngine, Workers

OpenStore: TypeAlias = Callable[[Settings, str, bool], AbstractAsyncContextManager[Store]]
"""Opens a store, given its settings, its root address, and whether it is reached from this machine alone."""

ROOT, BLOBS = "/sandbox", "blobs"
RESERVE_MIB = 1024
"""The free space on the volume that data sets require in addition to the free space that the service requires."""


@dataclass(frozen=True, slots=True)
class SandboxDependencies:
    """What the application passes in to run a data set. `application` builds the application of a store, `workers` is
    the command of a worker process for a store's jobs. If the command is empty, there are no workers."""

    open_store: OpenStore
    application: Callable[[Store], ASGIApp]
    template: DataSetTemplate
    workers: Sequence[str]


def settings_of(settings: Settings, folder: Path, template_dir: Path) -> Settings:
    """The settings of a data set in the folder. The data set reads the blobs of the template from the template's
    folder. The settings refer to nothing that belongs to the service itself."""
    return replace(
        settings,
        data=str(folder),
        config="",
        database_url="",
        master_key="",
        master_key_file="",
        blobs_url="",
        blobs_beneath=str(template_dir / BLOBS),
        cdn_url="",
        downloads="proxy",
        counters_url="",
        smtp_url="discard:",
        private_issuers=False,
        ask_model_url="",
        ask_model="",
        ask_model_key="",
        storage_mib=max(1, settings.sandbox_mib // 2),
        reserve_mib=settings.reserve_mib + RESERVE_MIB if settings.reserve_mib else 0,
        page_cache_mib=min(1, settings.page_cache_mib),
        artifact_max_mib=min(settings.sandbox_mib // 4 or 1, settings.artifact_max_mib),
        archive_total_mib=min(settings.sandbox_mib, settings.archive_total_mib),
        archive_seconds=min(60, settings.archive_seconds),
        archive_memory_mib=min(512, settings.archive_memory_mib),
        upload_ttl_s=min(3600, settings.upload_ttl_s),
        job_engine="embedded",
        jobs_running=min(2, settings.jobs_running),
        jobs_queued=min(20, settings.jobs_queued),
        job_seconds=min(120, settings.job_seconds),
        job_memory_mib=min(1024, settings.job_memory_mib),
        delta_group_mib=min(32, settings.delta_group_mib),
        sandboxes=0,
    )


def key_instructions(store: Store) -> str:
    """The remedy for a caller of the sandbox without a key."""
    return (
        f"Get a key with GET {store.root_url}/api/keys?tier=sandbox, then send it as X-API-Key to "
        f"{store.root_url}{ROOT}{PREFIX}: requests with this key act as an owner."
    )


_SIGNED_PREFIX = b"sandbox address\0"
_CAPABILITY_PATH = re.compile(
    rb"%s/(?P<name>[0-9A-Za-z_-]{1,64})\.(?P<signature>[0-9a-f]{32})(?=/api/v1/(artifacts/uploads|media/uploads|blobs)/)"
    % ROOT.encode()
)


def capability_root(store: Store, name: str) -> str:
    """The signed path under which clients can upload to the data set, and download from it, without its key."""
    return f"{ROOT}/{name}.{store.addresses.sign(_SIGNED_PREFIX + name.encode()).hex()}"


def parse_capability_path(store: Store, path: bytes) -> tuple[str, str] | None:
    """The name and the root of the data set, if the path is a signed upload or download address; None if it is not,
    or if the signature is invalid."""
    match = _CAPABILITY_PATH.match(path)
    if match is None or not store.addresses.verify(
        _SIGNED_PREFIX + match["name"], bytes.fromhex(match["signature"].decode())
    ):
        return None
    return match["name"].decode(), match[0].decode()


EMAIL = "owner@sandbox.example"
ORGANISATION = ("sandbox", "Sandbox")


async def ensure_owner(store: Store) -> str:
    """The id of the owner. In a new data set, the owner and the organisation are created together."""
    async with store.database.transaction() as transaction:
        owner = await queries.person_with_email(transaction, EMAIL)
        if owner is None:
            org = await organisations.create_organisation(transaction, *ORGANISATION)
            owner = await people.add_person(transaction, EMAIL, None)
            await people.set_role(transaction, org.id, EMAIL, "owner")
        return owner.id


class OwnerToken:
    """The owner's token for one data set. The token is renewed before it expires, and is never sent to a client."""

    def __init__(self, store: Store, person_id: str) -> None:
        self._store = store
        self._person_id = person_id
        self._token = ""
        self._renewed_s = float("-inf")

    async def token(self) -> str:
        """A token with every scope of the owner."""
        now_s = clock.monotonic_s()
        if now_s - self._renewed_s > self._store.settings.token_ttl_s / 2:
            granted_scopes = await tokens.scopes_of_person(self._store.database, self._person_id)
            self._token = tokens.issue(self._store, self._person_id, tokens.FIRST_PARTY, granted_scopes)
            self._renewed_s = now_s
        return self._token


P = ParamSpec("P")
T = TypeVar("T")

MAX_OPEN = 16
CLOSE_AFTER_S = 60.0
CLOSE_EVERY_S = 15.0
TOUCH_EVERY_S = 10.0
ATTEMPTS = 5


@dataclass(slots=True)
class DataSet:
    """An open data set: its application, and the owner's token."""

    name: str
    folder: Path
    store: Store
    application: ASGIApp
    owner: OwnerToken
    stack: AsyncExitStack
    users: int = 0
    used_s: float = field(default_factory=clock.monotonic_s)
    touched_s: float = field(default_factory=clock.monotonic_s)

    async def touch(self) -> None:
        """Record the use of the data set, for every process of the node."""
        self.used_s = clock.monotonic_s()
        if self.used_s - self.touched_s > TOUCH_EVERY_S:
            self.touched_s = self.used_s
            folders.touch(self.folder)


class DataSets:
    """Opens data sets and leaves recently used ones open. The folder of an open data set is locked, so that no
    process removes it."""

    def __init__(self, store: Store, dependencies: SandboxDependencies) -> None:
        self._store = store
        self._dependencies = dependencies
        self._data = Path(store.settings.data)
        self._open: dict[str, DataSet] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._workers = Workers(dependencies.workers, self._data)
        # Use a separate thread pool, because creating the first data set takes seconds.
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="sandbox")
        self._stack = AsyncExitStack()
        self._is_closing_unused = False

    @asynccontextmanager
    async def opened(self, name: str) -> AsyncGenerator[DataSet]:
        """Open the data set of that name, or create it if it does not exist. It stays open until the block ends.

        Raises:
            SandboxesFull: the limit of data sets is reached.
            Unavailable: the data set cannot be created or opened.
        """
        async with self._lock_of(name):
            data_set = self._open.get(name) or await self._open_data_set(name)
            data_set.users += 1
        try:
            await data_set.touch()
            yield data_set
        finally:
            data_set.users -= 1
            data_set.used_s = clock.monotonic_s()

    async def close_unused(self, seconds: float) -> None:
        """Close the data sets that were not used for `seconds`."""
        long_ago_s = clock.monotonic_s() - seconds
        for name in [name for name, value in self._open.items() if value.used_s <= long_ago_s]:
            await self._close_unused(name)

    async def close(self) -> None:
        """Stop the workers, and close every data set."""
        await self._stack.aclose()
        await self._workers.close()
        for name in list(self._open):
            await self._close(name)
        self._threads.shutdown(wait=False)

    def _lock_of(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def _open_data_set(self, name: str) -> DataSet:
        if not self._is_closing_unused:
            self._is_closing_unused = True
            closing_task = periodic(lambda: self.close_unused(CLOSE_AFTER_S), every_s=CLOSE_EVERY_S)
            await self._stack.enter_async_context(closing_task)
        await self._close_above_limit(MAX_OPEN - 1)
        async with AsyncExitStack() as stack:
            lock = await self._lock_folder(name)
            stack.callback(lock.close)
            folder = self._data / folders.FOLDER / name
            template_dir = folders.template_folder(self._data, self._dependencies.template)
            settings, root_url = settings_of(self._store.settings, folder, template_dir), self._store.root_url + ROOT
            store_context = self._dependencies.open_store(settings, root_url, self._store.is_loopback)
            store = await stack.enter_async_context(store_context)
            data_set = await self._build(name, folder, store)
            data_set.stack = stack.pop_all()
        self._open[name] = data_set
        if await workers.has_jobs(store.database):
            self._workers.wake(name, data_set.store, data_set.touch)
        return data_set

    async def _build(self, name: str, folder: Path, store: Store) -> DataSet:
        notifying_store = replace(
            store,
            token_hint=key_instructions(self._store),
            problems_url=self._store.root_url,
            capability_url=self._store.root_url + capability_root(self._store, name),
            jobs=NotifyingEngine(store.jobs, lambda: self._workers.wake(name, notifying_store, self._open[name].touch)),
        )
        person_id = await ensure_owner(notifying_store)
        return DataSet(
            name,
            folder,
            notifying_store,
            self._dependencies.application(notifying_store),
            OwnerToken(notifying_store, person_id),
            AsyncExitStack(),
        )

    async def _lock_folder(self, name: str) -> Descriptor:
        settings = self._store.settings
        for _ in range(ATTEMPTS):
            lock = await self._in_thread(folders.lock_existing, self._data, name, settings.sandbox_idle_s)
            if lock is not None:
                return lock
            folder_lock = await self._in_thread(
                folders.make_data_set,
                self._data,
                name,
                self._dependencies.template,
                max_data_sets=settings.sandboxes,
                idle_s=settings.sandbox_idle_s,
            )
            if folder_lock is not None:
                return folder_lock
        raise Unavailable("other processes keep removing the data set", headers={"Retry-After": "1"})

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(*args, **kwargs))

    async def _close_above_limit(self, limit: int) -> None:
        """Close the least recently used data sets above the limit, except those in use."""
        by_age = sorted(self._open.values(), key=lambda data_set: data_set.used_s)
        for data_set in by_age[: max(0, len(by_age) - limit)]:
            await self._close_unused(data_set.name)

    async def _close_unused(self, name: str) -> None:
        async with self._lock_of(name):
            data_set = self._open.get(name)
            if data_set is not None and not data_set.users and not self._workers.is_working(name):
                await self._close(name)

    async def _close(self, name: str) -> None:
        data_set = self._open.pop(name)
        await data_set.stack.aclose()
