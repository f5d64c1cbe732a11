"""`countersign pull`: a folder brought to what a channel is at, with as few bytes as that takes."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias

import click
import msgspec

from countersign.cli import belief, connection, names, output, pins, progress
from countersign.cli.belief import Wanted
from countersign.cli.choice import owned_by
from countersign.cli.connection import Server
from countersign.cli.names import CHANNELS, PLATFORMS, Product
from countersign.cli.output import Exit, Failure, exit_of
from countersign.cli.progress import Meter
from countersign.cli.supply import Supply
from countersign.cli.target import server_option
from countersign.kernel.errors import Refused, is_disk_full
from countersign.updates.install import installer
from countersign.updates.install.installer import PullOptions, PullReport, VerifiedRelease
from countersign.updates.planner import UpdatePlan
from countersign.updates.trust import KeyChanged

Value: TypeAlias = dict[str, object]


@click.command()
@click.argument("product", callback=names.product, metavar="ORG/PRODUCT")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@click.option("--channel", type=click.Choice(CHANNELS), default="stable", show_default=True)
@click.option("--platform", type=click.Choice(PLATFORMS), help="Default: this machine's, where there are several.")
@click.option("--version", help="A version by name. Default: what the channel is at.")
@click.option("--verify", is_flag=True, help="Read every file, whatever its size and time say.")
@click.option("--dry-run", is_flag=True, help="Say what would be fetched and written, and end.")
@server_option
@output.json_option
def pull(
    *,
    product: Product,
    folder: Path,
    channel: str,
    platform: str | None,
    version: str | None,
    verify: bool,
    dry_run: bool,
) -> None:
    """Install ORG/PRODUCT into DIR, or bring what is there to what the channel is at.

    Only what is missing or different is fetched; files that you added stay. DIR is as it was until the new version is
    whole. After a cut, ctrl-C or a crash run the same command again: it goes on with what it has.
    """
    wanted = Wanted(product, channel, version, platform, folder)
    server = connection.chosen()
    found = owned_by(server, product, wanted.doing)
    with _told(wanted):
        release = belief.believed(server, found, wanted)
        report = _install(server, release, wanted, verify=verify, dry_run=dry_run)
    output.answer(_value(release, report, folder), _words(release, report, wanted, dry_run=dry_run))


def _install(server: Server, release: VerifiedRelease, wanted: Wanted, *, verify: bool, dry_run: bool) -> PullReport:
    manifest = release.manifest
    supply = Supply(server, manifest.product, manifest.version, manifest.platform or "", wanted.doing)
    with ExitStack() as stack:
        shown = _Shown(stack, f"{wanted.product} {manifest.version}", manifest.size, is_dry=dry_run)
        way = PullOptions(verify=verify, dry_run=dry_run, announce=shown.announce, progress=shown.add)
        return installer.pull(wanted.folder, release, supply, way)


class _Shown:
    """The plan in words, then how far the fetching is."""

    def __init__(self, stack: ExitStack, label: str, size: int, *, is_dry: bool) -> None:
        self._stack, self._label, self._size, self._is_dry = stack, label, size, is_dry
        self._meter: Meter | None = None
        self._done = 0

    def announce(self, plan: UpdatePlan) -> None:
        """Say what will be fetched and written."""
        size, fetch = progress.size(self._size), progress.size(plan.fetch_bytes)
        # What lies between two wanted chunks comes along where that saves a request.
        about = f"{self._label} has {size} of files; the download is about {fetch}"
        output.note(f"{about}, and {progress.size(plan.write_bytes)} are written." if self._is_dry else f"{about}.")
        if plan.fetch_bytes and not self._is_dry:
            self._meter = self._stack.enter_context(progress.meter("download", plan.fetch_bytes))

    def add(self, count: int) -> None:
        """So many bytes more have come."""
        self._done += count
        if self._meter is not None:
            self._meter.at(self._done)


@contextmanager
def _told(wanted: Wanted) -> Generator[None]:
    """Refusals and errors of the machine as the failure of a command."""
    try:
        yield
    except Refused as error:
        exit_code = exit_of(error.status, error.code)
        remedy = f"{error.remedy} The pin is in {pins.file()}." if isinstance(error, KeyChanged) else error.remedy
        raise Failure(wanted.doing, why=error.detail, remedy=remedy, exit_code=exit_code, problem=error.code) from error
    except OSError as error:
        exit_code = Exit.STORAGE_FULL if is_disk_full(error) else Exit.FAILED
        why = f"{error.filename or wanted.folder}: {error.strerror or error}"
        remedy = f"{wanted.folder} is as it was. Correct what is named, then run the same command again."
        raise Failure(wanted.doing, why=why, remedy=remedy, exit_code=exit_code) from error
    except KeyboardInterrupt as error:
        remedy = "Run the same command again: it goes on where this one ended."
        raise Failure("the pull was interrupted", remedy=remedy, exit_code=Exit.INTERRUPTED) from error


def _value(release: VerifiedRelease, report: PullReport, folder: Path) -> Value:
    manifest, plan = release.manifest, report.plan
    planned: Value = {}
    if plan is not None:
        planned = {"fetch_bytes": plan.fetch_bytes, "write_bytes": plan.write_bytes, "artifact": plan.artifact}
        planned |= {"kept": len(plan.kept), "copied": len(plan.copied), "deltas": len(plan.deltas)}
        planned |= {"assembled": len(plan.assembled)}
    return {
        "product": manifest.product,
        "version": manifest.version,
        "former": report.former,
        "channel": release.channel,
        "platform": manifest.platform or "",
        "path": str(folder),
        "changed": report.is_changed,
        "plan": planned,
        "fetched_bytes": report.stats.fetched_bytes,
        "wounds": msgspec.to_builtins(report.corruptions),
        "aside": report.aside,
        "detours": report.stats.detours,
    }


def _words(release: VerifiedRelease, report: PullReport, wanted: Wanted, *, dry_run: bool) -> str:
    lines = [
        f"{corruption.path}: {corruption.kind}, {corruption.size} bytes from {corruption.offset}"
        for corruption in report.corruptions
    ]
    lines += [f"{path} was yours and stood in the way: it is {goal} now" for path, goal in report.aside.items()]
    lines += report.stats.detours
    name = f"{wanted.product} {release.manifest.version}"
    if dry_run and report.plan is not None:
        return "\n".join([*lines, f"{wanted.folder} would become {name}; nothing was changed"])
    if not report.is_changed:
        return "\n".join([*lines, f"{wanted.folder} is {name} already"])
    came = f", it was {report.former}" if report.former not in (None, "", release.manifest.version) else ""
    came += ", healed" if report.corruptions else ""
    downloaded = progress.size(report.stats.fetched_bytes)
    return "\n".join([*lines, f"{wanted.folder} is {name}{came}; downloaded {downloaded}"])
