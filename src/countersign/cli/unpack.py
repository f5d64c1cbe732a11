"""`countersign unpack`: an archive as a folder, read strictly by a process that has no rights."""

from dataclasses import replace
from pathlib import Path

import click

from countersign.archives.limits import Limits
from countersign.archives.refusals import ArchiveRefused
from countersign.archives.sandboxed_extraction import extract_in_sandbox
from countersign.cli import output, progress
from countersign.cli.output import Exit, Failure
from countersign.kernel.errors import Refused

DOING = "cannot unpack the archive"
_CONFLICT, _FULL = 409, 507


@click.command()
@click.argument("archive", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option("--compatible", is_flag=True, help="Also take what is unusual and harmless.")
@output.json_option
def unpack(*, archive: Path, folder: Path, compatible: bool) -> None:
    """Unpack ARCHIVE (zip, or tar: plain, gzip, xz, zstd) as the folder DIR, which is new or empty.

    All or nothing: an archive that breaks a rule of docs/reference/archive-rules.md is refused with the entry and
    the rule, and nothing is written.
    """
    limits = replace(Limits(), profile="compatible") if compatible else Limits()
    try:
        with archive.open("rb") as source:
            done = extract_in_sandbox(source, folder, limits, name=archive.name)
    except Refused as refused:
        raise _failure(refused) from refused
    except OSError as error:
        why = f"{error.filename or folder}: {error.strerror or error}"
        raise Failure(DOING, why=why, remedy="Choose a folder that you may write to.") from error
    output.answer(
        {"path": str(folder), "files": done.files, "folders": done.folders, "links": done.links, "size": done.size},
        f"{folder} has {done.files} files ({progress.size(done.size)}), {done.folders} folders, {done.links} links.",
    )


def _failure(refused: Refused) -> Failure:
    exits = {_CONFLICT: Exit.CONFLICT, _FULL: Exit.STORAGE_FULL}
    exit_code = exits.get(refused.status, Exit.FAILED)
    why, remedy = refused.detail, refused.remedy
    if isinstance(refused, ArchiveRefused):
        why = f"{refused.detail} (rule {refused.rule})"
        remedy = "Do not trust the archive, or let its maker correct it; nothing was written."
    return Failure(DOING, why=why, remedy=remedy, exit_code=exit_code, problem=refused.code)
