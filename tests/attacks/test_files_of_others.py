"""Attacks by another user of the same machine: only its owner can read the data directory."""

import os
from pathlib import Path

import pytest

from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store import demo
from tests.store.conftest import ROOT_URL


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_no_file_in_a_readable_data_directory_is_open_to_other_users(settings: Settings) -> None:
    data = Path(settings.data)
    data.mkdir(mode=0o755)
    old_umask = os.umask(0o022)
    try:
        async with distribution.open_store(settings, ROOT_URL, is_loopback=True) as store:
            await demo.seed(store)
            modes = {path.name: path.stat().st_mode & 0o077 for path in (*data.iterdir(), *(data / "blobs").iterdir())}
    finally:
        os.umask(old_umask)

    assert "distribution.sqlite-wal" in modes
    assert {name: oct(mode) for name, mode in modes.items() if mode} == {}
