"""`countersign pull`: install a product in a folder or update it, and download as few bytes as possible."""

import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlencode, urlsplit

import click
import msgspec

from countersign.cli import output, progress
from countersign.cli.client import connection, release_trust
from countersign.cli.client.connection import Server, require_owned_by, segment
from countersign.cli.client.release_trust import PullRequest
from countersign.cli.client.transport import Response, Unreachable, read
from countersign.cli.options import CHANNELS, PLATFORMS, ProductName, parse_org, parse_product, server_option
from countersign.cli.output import Exit, Failure, exit_code_of
from countersign.cli.progress import Meter
from countersign.cli.server.listen_address import is_loopback
from countersign.kernel.errors import Refused, is_disk_full
from countersign.updates.api_types import BEGINS_HEADER, ChunkPlaces, DeltaOffer
from countersign.updates.install import installer
from countersign.updates.install.installer import PullOptions, PullReport, VerifiedRelease
from countersign.updates.planner import UpdatePlan
from countersign.updates.trust import KeyChanged

ATTEMPTS = 8
PIECE_BYTES = 256 << 10

Value: TypeAlias = dict[str, object]


class DeltaSource:
    """Downloads the chunks and deltas of one build of a release from a store."""

    def __init__(self, server: Server, product: str, version: str, platform: str, failure: str) -> None:
        self._server = server
        self._path = f"/products/{segment(product)}/releases/{segment(version)}"
        self._platform = platform
        self._failure = failure
        self._original_urls: list[str] = []
        """The URLs that the store returned first. `_current_urls` has the currently valid URLs, in the same order."""
        self._current_urls: list[str] = []
        self._from = ""

    def places(self, *, is_start: bool) -> ChunkPlaces:
        """Return the locations of the chunks. With `is_start`, the store counts the request as the start of a download.

        Raises:
            Failure: the server refuses the request or cannot be reached.
        """
        chunk_places = self._places({BEGINS_HEADER: "1"} if is_start else {})
        self._original_urls = self._current_urls = _urls(chunk_places, None)
        return chunk_places

    def offer(self, version: str) -> DeltaOffer | None:
        """Return the deltas from `version`, or None if the store no longer offers them.

        Raises:
            Failure: the server refuses the request or cannot be reached.
        """
        delta_offer = self._offer(version)
        self._from = version
        self._original_urls = self._current_urls = [*self._original_urls, *_urls(None, delta_offer)]
        return delta_offer

    def read(self, url: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield the bytes of the range; after a broken connection, request the remaining bytes again.

        Raises:
            Failure: the server refuses the request, or ATTEMPTS attempts in a row brought no byte.
        """
        received_bytes = failures = 0
        while received_bytes < length:
            received_before = received_bytes
            try:
                with self._ask(url, offset + received_bytes, offset + length) as response:
                    while piece := read(response, min(PIECE_BYTES, length - received_bytes)):
                        received_bytes += len(piece)
                        yield piece
                if received_bytes < length:
                    raise Unreachable("the connection was closed before all bytes had arrived")
            except Unreachable as error:
                failures = 1 if received_bytes > received_before else failures + 1
                if failures == ATTEMPTS:
                    raise self._server.unreachable(self._failure, str(error)) from error
                connection.wait(connection.pause_s(failures))

    def _ask(self, url: str, start: int, end: int) -> Response:
        """Request the range and return the response. If the URL has expired, get a new one and request once more."""
        try:
            return self._stream(self._current(url), start, end)
        except Failure as error:
            if error.exit_code not in (Exit.REFUSED, Exit.NOT_FOUND, Exit.CONFLICT) or url not in self._original_urls:
                raise
        offer = self._offer(self._from) if self._from else None
        self._current_urls = _urls(self._places(), offer)
        return self._stream(self._current(url), start, end)

    def _stream(self, url: str, start: int, end: int) -> Response:
        headers = {"Range": f"bytes={start}-{end - 1}"}
        response = self._server.stream(self._server.reachable_url(url), headers, self._failure)
        is_partial = (response.getheader("Content-Range") or "").startswith(f"bytes {start}-")
        if response.status == 206 and is_partial:
            return response
        if response.status == 200 and start == 0:
            return response
        response.close()
        reason = f"the server did not return the requested bytes from offset {start}"
        raise Failure(self._failure, why=reason, remedy="Try again.", exit_code=Exit.CHECKSUM)

    def _current(self, url: str) -> str:
        url_index = self._original_urls.index(url) if url in self._original_urls else -1
        return self._current_urls[url_index] if 0 <= url_index < len(self._current_urls) else url

    def _places(self, headers: dict[str, str] | None = None) -> ChunkPlaces:
        return self._server.get(f"{self._path}/chunks{self._query()}", ChunkPlaces, self._failure, headers)

    def _offer(self, version: str) -> DeltaOffer | None:
        query = self._query({"from": version})
        try:
            return self._server.get(f"{self._path}/delta{query}", DeltaOffer, self._failure)
        except Failure as error:
            if error.exit_code in (Exit.NOT_FOUND, Exit.REFUSED):
                return None
            raise

    def _query(self, extra_query: dict[str, str] | None = None) -> str:
        query = {**(extra_query or {}), **({"platform": self._platform} if self._platform else {})}
        return f"?{urlencode(query)}" if query else ""


def _urls(places: ChunkPlaces | None, offer: DeltaOffer | None) -> list[str]:
    """Return every URL, in an order that does not change unless the store processes the build again."""
    of_places = [*(pack.url for pack in places.packs), places.artifact_url] if places else []
    return [*of_places, *(delta.url for delta in offer.deltas)] if offer else of_places


@click.command()
@click.argument("product", callback=parse_product, metavar="ORG/PRODUCT")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@click.option("--channel", type=click.Choice(CHANNELS), default="stable", show_default=True)
@click.option(
    "--platform",
    type=click.Choice(PLATFORMS),
    help="Default: the platform of this machine, if the release has builds for several.",
)
@click.option("--version", help="Version to install. Default: the current version of the channel.")
@click.option("--verify", is_flag=True, help="Read every file, even if its size and time are unchanged.")
@click.option("--dry-run", is_flag=True, help="Print what would be fetched and written, and change nothing.")
@server_option
@output.json_option
def pull(
    *,
    product: ProductName,
    folder: Path,
    channel: str,
    platform: str | None,
    version: str | None,
    verify: bool,
    dry_run: bool,
) -> None:
    """Install ORG/PRODUCT into DIR, or update DIR to the current version of the channel.

    Only what is missing or different is downloaded. Files that you added are kept. DIR does not change until the new
    version is complete. After a lost connection, ctrl-C or a crash, run the same command again: it continues with what
    it has downloaded.
    """
    request = PullRequest(product, channel, version, platform, folder)
    server = connection.selected_server()
    catalog_product = require_owned_by(server, product, request.failure)
    with _failures(request, server):
        release = release_trust.trusted_release(server, catalog_product, request)
        report = _install(server, release, request, verify=verify, dry_run=dry_run)
    output.print_result(_result_value(release, report, folder), _result_text(release, report, request, dry_run=dry_run))


def _install(
    server: Server, release: VerifiedRelease, request: PullRequest, *, verify: bool, dry_run: bool
) -> PullReport:
    manifest = release.manifest
    supply = DeltaSource(server, manifest.product, manifest.version, manifest.platform or "", request.failure)
    with ExitStack() as stack:
        display = _PullDisplay(stack, f"{request.product} {manifest.version}", manifest.size, is_dry=dry_run)
        options = PullOptions(verify=verify, dry_run=dry_run, announce=display.announce, progress=display.add)
        return installer.pull(request.folder, release, supply, options)


class _PullDisplay:
    """Prints the plan of the update, then shows the progress of the download."""

    def __init__(self, stack: ExitStack, label: str, size: int, *, is_dry: bool) -> None:
        self._stack, self._label, self._size, self._is_dry = stack, label, size, is_dry
        self._meter: Meter | None = None
        self._done = 0

    def announce(self, plan: UpdatePlan) -> None:
        """Print how much will be downloaded and, in a dry run, written."""
        size, fetch = progress.size(self._size), progress.size(plan.fetch_bytes)
        # Bytes between two wanted chunks are also downloaded if that saves a request.
        about = f"{self._label} has {size} of files; the download is about {fetch}"
        output.note(f"{about}, and {progress.size(plan.write_bytes)} are written." if self._is_dry else f"{about}.")
        if plan.fetch_bytes and not self._is_dry:
            self._meter = self._stack.enter_context(progress.meter("download", plan.fetch_bytes))

    def add(self, count: int) -> None:
        """Report that `count` more bytes have been downloaded."""
        self._done += count
        if self._meter is not None:
            self._meter.at(self._done)


@contextmanager
def _failures(request: PullRequest, server: Server) -> Generator[None]:
    """Raise refusals and operating system errors as a Failure of the command."""
    try:
        yield
    except Refused as error:
        exit_code = exit_code_of(error.status, error.code)
        remedy = _unpin_remedy(request, server) if isinstance(error, KeyChanged) else error.remedy
        raise Failure(
            request.failure, why=error.detail, remedy=remedy, exit_code=exit_code, problem=error.code
        ) from error
    except OSError as error:
        exit_code = Exit.STORAGE_FULL if is_disk_full(error) else Exit.FAILED
        reason = f"{error.filename or request.folder}: {error.strerror or error}"
        remedy = f"{request.folder} is unchanged. Correct the named problem, then run the same command again."
        raise Failure(request.failure, why=reason, remedy=remedy, exit_code=exit_code) from error
    except KeyboardInterrupt as error:
        remedy = "Run the same command again: it continues where this run stopped."
        raise Failure("the pull was interrupted", remedy=remedy, exit_code=Exit.INTERRUPTED) from error


def _unpin_remedy(request: PullRequest, server: Server) -> str:
    """Return the remedy for a key that does not follow from the pinned key: it names the command that unpins a key."""
    org, demo = request.product.org, ""
    if is_loopback(urlsplit(server.root).hostname or ""):
        demo = ", or if the store on this machine was reset (each demonstration makes keys of its own)"
    unpin = f"forget the pinned key with `countersign unpin {org} --server {server.root}`, then pull into a new folder"
    return f"Ask the publisher. Only if they say that they lost their key{demo}: {unpin}."


@click.command()
@click.argument("org", callback=parse_org, metavar="ORG")
@click.option("--yes", is_flag=True, help="Forget the key without asking for confirmation.")
@server_option
@output.json_option
def unpin(org: str, yes: bool) -> None:
    """Forget the key of ORG that the first pull from this server pinned.

    The next pull trusts any key that the server then shows. Do this only if you know why the key has changed: the
    publisher says that the key was lost, or you have reset your own server.
    """
    server, failure = connection.selected_server(), f"cannot forget the key of {org}"
    pin = release_trust.load_pin(server.root, org)
    if pin is None:
        reason = f"no key of {org} at {server.root} is pinned in {release_trust.pins_file()}"
        remedy = "Name the server with --server as `pull` does."
        raise Failure(failure, why=reason, remedy=remedy, exit_code=Exit.NOT_FOUND)
    if not yes:
        _confirm_unpin(org, server, pin.key.keyid, failure)
    release_trust.forget_pin(server.root, org)
    value = {"server": server.root, "org": org, "keyid": pin.key.keyid}
    output.print_result(value, f"Forgot the key {pin.key.keyid} of {org} at {server.root}.")


def _confirm_unpin(org: str, server: Server, keyid: str, failure: str) -> None:
    """Ask for confirmation on a terminal.

    Raises:
        Failure: the answer is no, or stdin is not a terminal.
    """
    output.note(f"The next pull will trust any key that {server.root} shows for {org}.")
    if not sys.stdin.isatty():
        remedy = "Run the command again with --yes."
        raise Failure(failure, why="this is not confirmed", remedy=remedy, exit_code=Exit.USAGE)
    if not click.confirm(f"Forget the key {keyid}?", err=True):
        raise Failure(failure, why="this was not confirmed; the key stays pinned", exit_code=Exit.USAGE)


def _result_value(release: VerifiedRelease, report: PullReport, folder: Path) -> Value:
    manifest, plan = release.manifest, report.plan
    plan_value: Value = {}
    if plan is not None:
        plan_value = {"fetch_bytes": plan.fetch_bytes, "write_bytes": plan.write_bytes, "artifact": plan.artifact}
        plan_value |= {"kept": len(plan.kept), "copied": len(plan.copied), "deltas": len(plan.deltas)}
        plan_value |= {"assembled": len(plan.assembled)}
    return {
        "product": manifest.product,
        "version": manifest.version,
        "former": report.former,
        "channel": release.channel,
        "platform": manifest.platform or "",
        "path": str(folder),
        "changed": report.is_changed,
        "plan": plan_value,
        "fetched_bytes": report.stats.fetched_bytes,
        "wounds": msgspec.to_builtins(report.corruptions),
        "aside": report.aside,
        "detours": report.stats.detours,
    }


def _result_text(release: VerifiedRelease, report: PullReport, request: PullRequest, *, dry_run: bool) -> str:
    lines = [
        f"{corruption.path}: {corruption.kind}, {corruption.size} bytes from {corruption.offset}"
        for corruption in report.corruptions
    ]
    lines += [
        f"{path} is your file, and the release needs its path: it is kept as {goal}"
        for path, goal in report.aside.items()
    ]
    lines += report.stats.detours
    name = f"{request.product} {release.manifest.version}"
    if dry_run and report.plan is not None:
        return "\n".join([*lines, f"{request.folder} would become {name}; nothing was changed"])
    if not report.is_changed:
        return "\n".join([*lines, f"{request.folder} is {name} already"])
    former_note = f", it was {report.former}" if report.former not in (None, "", release.manifest.version) else ""
    former_note += ", repaired" if report.corruptions else ""
    downloaded_text = progress.size(report.stats.fetched_bytes)
    return "\n".join([*lines, f"{request.folder} is {name}{former_note}; downloaded {downloaded_text}"])
