"""Extracts an archive in a confined process of its own, for callers that have rights to protect."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from countersign.archives import confinement
from countersign.archives.confinement import UNPRIVILEGED_ID
from countersign.archives.extraction import ExtractionCounts, extract, require_empty_target
from countersign.archives.limits import MAX_PROCESS_BYTES, Limits
from countersign.archives.refusals import ArchiveRefused, ArchiveUnknown
from countersign.file_sync import sync_folder
from countersign.kernel import ids
from countersign.kernel.errors import Refused, StorageFull, disk_full, is_disk_full

_READER_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The exceptions that an error in the reader raises. The same bytes would cause the same error again."""
TREE = "tree"
"""The name of the output folder, in the working directory of the process."""


class ExtractOrder(msgspec.Struct):
    """The options for extracting the archive that the process reads from stdin."""

    limits: Limits
    name: str
    durable: bool
    memory_bytes: int


class ExtractResult(msgspec.Struct):
    """The outcome of an extraction: the counts if it succeeded, otherwise the reason for the failure."""

    how: Literal["done", "refused", "unknown", "full", "failed"]
    files: int = 0
    folders: int = 0
    links: int = 0
    size: int = 0
    rule: str = ""
    entry: str | None = None
    detail: str = ""


def perform(extract_order: ExtractOrder) -> ExtractResult:
    """Confine this process permanently, then extract stdin to the folder `tree` in the working directory."""
    confinement.confine(folder=Path(), memory_bytes=extract_order.memory_bytes, cpu_s=extract_order.limits.seconds + 1)
    try:
        with open(0, "rb", closefd=False) as source:
            report = extract(
                source, Path(TREE), extract_order.limits, name=extract_order.name, durable=extract_order.durable
            )
    except ArchiveRefused as error:
        return ExtractResult("refused", rule=error.rule, entry=error.entry, detail=error.detail)
    except _READER_ERRORS as fault:
        return ExtractResult("refused", rule="unreadable", detail=f"the reader failed: {type(fault).__name__}")
    except MemoryError:
        return ExtractResult("refused", rule="memory", detail="reading it needs more memory than is allowed")
    except ArchiveUnknown as error:
        return ExtractResult("unknown", detail=error.detail)
    except StorageFull as error:
        return ExtractResult("full", detail=error.detail)
    except OSError as error:
        return ExtractResult("failed", detail=error.strerror or str(error))
    return ExtractResult("done", report.files, report.folders, report.links, report.size)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    result = perform(msgspec.json.decode(sys.argv[1], type=ExtractOrder))
    sys.stdout.buffer.write(msgspec.json.encode(result))


_GRACE_S = 30


class ReaderFailed(Refused):
    """The process that reads archives ended without an answer."""

    status = 500
    code = "reader_failed"
    title = "The reader of archives failed"
    resolution = "Try again; if it happens again, report the archive as an error of this program."


def extract_in_sandbox(
    source: BinaryIO,
    target: Path,
    limits: Limits,
    *,
    name: str = "",
    durable: bool = True,
    memory_bytes: int = MAX_PROCESS_BYTES,
) -> ExtractionCounts:
    """Extract an archive like `extraction.extract`, but in a confined process.

    `source` must have a file descriptor; its position afterwards is undefined. The caller owns the extracted tree. If
    extraction fails, the partial tree is removed.

    Raises:
        ArchiveRefused, ArchiveUnknown, StorageFull, TargetTaken: see `extract`.
        ReaderFailed: the process ended without a result.
        OSError: the folder beside `target` cannot be written.
    """
    require_empty_target(target)
    holder = target.absolute().with_name(f".{target.name}.partial-{ids.new_record_id()[:12]}")
    order = ExtractOrder(limits, name, durable, memory_bytes)
    try:
        holder.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(holder, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
        result = _run_process(source, holder, order)
        if result.how == "done":
            if os.geteuid() == 0:
                _take_ownership(holder / TREE)
            os.rename(holder / TREE, target)
            if durable:
                sync_folder(target.absolute().parent)
    except OSError as error:
        if is_disk_full(error):
            raise disk_full(f"the content unpacked to {target.name}", error) from error
        raise
    finally:
        shutil.rmtree(holder, ignore_errors=True)
    return _result(result)


def _run_process(source: BinaryIO, holder: Path, order: ExtractOrder) -> ExtractResult:
    """Run the extraction in a child process and return its result."""
    source.seek(0)
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    try:
        process = subprocess.run(
            [
                sys.executable,
                "-P",
                "-m",
                "countersign.archives.sandboxed_extraction",
                msgspec.json.encode(order).decode(),
            ],
            cwd=holder,
            stdin=source,
            capture_output=True,
            env={"PYTHONPATH": path, "LANG": "C.UTF-8"},
            timeout=order.limits.seconds + _GRACE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ArchiveRefused("too-slow", f"reading takes longer than {order.limits.seconds} seconds") from error
    if process.returncode == -signal.SIGXCPU:
        raise ArchiveRefused("too-slow", f"reading takes longer than {order.limits.seconds} seconds")
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(process.stdout, type=ExtractResult)
    last_line = process.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    if last_line and last_line[0].startswith("MemoryError"):
        return ExtractResult("refused", rule="memory", detail="reading it needs more memory than is allowed")
    raise ReaderFailed(f"it ended with {process.returncode}: {''.join(last_line)[:300]}")


def _result(result: ExtractResult) -> ExtractionCounts:
    """Return the counts, or raise the error that the process reported."""
    if result.how == "done":
        return ExtractionCounts(result.files, result.folders, result.links, result.size)
    if result.how == "refused":
        raise ArchiveRefused.reported(result.rule, result.detail, result.entry)
    if result.how == "unknown":
        raise ArchiveUnknown(result.detail)
    if result.how == "full":
        raise StorageFull(result.detail)
    raise ReaderFailed(result.detail)


def _take_ownership(tree: Path) -> None:
    """Make the caller the owner of the tree. For a link, change the owner of the link, not of its target."""
    for _, folders, files, handle in os.fwalk(tree):
        os.chown(".", os.geteuid(), os.getegid(), dir_fd=handle)
        for name in (*folders, *files):
            os.chown(name, os.geteuid(), os.getegid(), dir_fd=handle, follow_symlinks=False)
