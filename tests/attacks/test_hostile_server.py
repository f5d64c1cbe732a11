"""Attacks on the command line: by a server that answers with malice, and by others who write to the same folder."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run, Scripted, home, run, scripted

__all__ = ["home", "run", "scripted"]

CONTENT = b"hello"
ARTIFACT: dict[str, object] = {
    "id": "1",
    "filename": "game.bin",
    "size": len(CONTENT),
    "sha256": hashlib.sha256(CONTENT).hexdigest(),
}


def shop(script: Scripted) -> None:
    """Answer what `download` asks before it asks for the bytes."""
    product: dict[str, object] = {
        "id": "p",
        "slug": "game",
        "title": "Game",
        "kind": "game",
        "platforms": [],
        "org": "north",
    }
    script.say(200, product)
    script.say(200, [{"version": "1.0.0", "channel": "stable", "published_at": "x", "artifacts": [ARTIFACT]}])


@pytest.mark.parametrize("location", ["file:///etc/hostname", "ftp://127.0.0.1/game.bin", "http://[::1", "gopher://x"])
def test_a_redirect_leads_to_no_other_protocol(
    run: Run, scripted: Callable[[], Scripted], tmp_path: Path, location: str
) -> None:
    script = scripted()
    shop(script)
    script.say(302, {}, Location=location)

    ended = run("download", "north/game", "--server", script.url, COUNTERSIGN_TOKEN="token")

    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "redirect" in ended.stderr
    assert not (tmp_path / "game.bin").exists()


def test_a_link_laid_in_the_way_of_a_download_is_not_written_through(
    run: Run, scripted: Callable[[], Scripted], tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    (tmp_path / "game.bin.part").symlink_to(victim)
    script = scripted()
    shop(script)
    script.answers += [(200, {}, CONTENT)] * 3

    ended = run("download", "north/game", "--server", script.url, COUNTERSIGN_TOKEN="token")

    assert victim.read_bytes() == b"mine"
    assert ended.returncode == 1
    assert not (tmp_path / "game.bin").exists()
