"""The folders in which attempts at jobs keep what they need for the moment: one each, gone with it."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from countersign.kernel.database.port import Database

FOLDER = "work"
IS_RUNNING = "SELECT 1 FROM job WHERE id = $1 AND attempts = $2 AND status = 'running'"


@asynccontextmanager
async def scratch(data: Path, job_id: str, attempt: int) -> AsyncGenerator[Path]:
    """An empty folder of this attempt's own below the data directory, until the block is left."""
    folder = data / FOLDER / f"{job_id}-{attempt}"
    _make(folder)
    try:
        yield folder
    finally:
        # Most jobs leave it empty; what is left may be a whole build.
        if not _is_removed(folder):
            await asyncio.shield(asyncio.to_thread(_remove, folder))


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        # Of an attempt with the same number, which was given back.
        _remove(folder)
        folder.mkdir(mode=0o700)


def _is_removed(folder: Path) -> bool:
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


async def sweep(data: Path, database: Database) -> int:
    """Remove the folders of attempts that run no longer; how many there were. What is in one that another process is
    just about to make, or to remove, is left alone."""
    removed = 0
    for folder in await asyncio.to_thread(_folders, data / FOLDER):
        job_id, _, attempt = folder.name.rpartition("-")
        if attempt.isdigit() and await database.fetch_one(IS_RUNNING, job_id, int(attempt)) is None:
            await asyncio.to_thread(_remove, folder)
            removed += 1
    return removed


def _folders(parent: Path) -> list[Path]:
    return [folder for folder in parent.iterdir() if folder.is_dir()] if parent.is_dir() else []
