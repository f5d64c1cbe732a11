"""Places where a pull must not install, invalid manifests, and traps by other users."""

import os
from pathlib import Path

import pytest

from countersign.kernel.errors import StorageFull
from countersign.updates.install.validate_manifest import ManifestRefused
from countersign.updates.install.workspace import WorkspaceLocked, WorkspaceRefused, open_workspace, side_folder
from tests.updates.builds import BuildServer, build, contents_of
from tests.updates.test_install import NEW, OLD, is_build, pull


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A folder with the old version installed."""
    pull(tmp_path / "app", BuildServer(OLD))
    return tmp_path / "app"


@pytest.mark.parametrize("planted_path", ["lib", "bin/tool", "fresh.txt"])
def test_a_planted_link_is_never_written_through(app: Path, tmp_path: Path, planted_path: str) -> None:
    outside_folder = tmp_path / "outside"
    outside_folder.mkdir()
    (outside_folder / "b.txt").write_bytes(b"precious")
    path = app / planted_path
    if path.is_dir():
        for child in path.iterdir():
            child.unlink()
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    path.symlink_to(outside_folder if planted_path == "lib" else outside_folder / "b.txt")

    pull(app, BuildServer(NEW, OLD))

    assert (outside_folder / "b.txt").read_bytes() == b"precious"
    assert sorted(path.name for path in outside_folder.iterdir()) == ["b.txt"]
    assert not path.is_symlink()
    assert contents_of(app).items() >= dict(NEW.contents).items()


def test_a_link_in_the_place_of_our_own_state_is_not_followed(app: Path, tmp_path: Path) -> None:
    (app / ".countersign").rename(tmp_path / "elsewhere")
    (app / ".countersign").symlink_to(tmp_path / "elsewhere")
    state_before = (tmp_path / "elsewhere/state.json").read_bytes()

    pull(app, BuildServer(NEW))

    assert (tmp_path / "elsewhere/state.json").read_bytes() == state_before
    assert not (app / ".countersign").is_symlink()


def test_a_folder_planted_beside_the_installation_is_refused(app: Path, tmp_path: Path) -> None:
    (tmp_path / "trap").mkdir()
    side_folder(app).symlink_to(tmp_path / "trap")

    with pytest.raises(WorkspaceRefused):
        pull(app, BuildServer(NEW))

    assert list((tmp_path / "trap").iterdir()) == []


def test_a_pull_into_a_folder_locked_by_another_pull_is_refused(app: Path) -> None:
    with open_workspace(app), pytest.raises(WorkspaceLocked):
        pull(app, BuildServer(NEW))

    assert is_build(app, OLD)


@pytest.mark.parametrize(
    ("path", "expected_word"),
    [
        ("../evil", "dot-dot"),
        ("/etc/evil", "slash"),
        (".countersign/state.json", "state of the installation"),
        (".CounterSign/x", "reserved"),
    ],
)
def test_a_hostile_manifest_is_refused_before_any_change(tmp_path: Path, path: str, expected_word: str) -> None:
    with pytest.raises(ManifestRefused) as refusal:
        pull(tmp_path / "app", BuildServer(build("1.0", {path: b"evil"})))

    assert expected_word in str(refusal.value) or ".." in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["/etc", "../../outside", "up/../../.."])
def test_a_manifest_with_a_link_that_leads_outside_is_refused(tmp_path: Path, target: str) -> None:
    with pytest.raises(ManifestRefused):
        pull(tmp_path / "app", BuildServer(build("1.0", {"file": b"x"}, links={"link": target})))


def test_a_manifest_that_writes_through_its_own_link_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestRefused):
        pull(tmp_path / "app", BuildServer(build("1.0", {"link/file": b"x"}, links={"link": "elsewhere"})))


def test_a_folder_that_cannot_be_written_is_refused_first(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app.parent.chmod(0o500)
    if os.geteuid() == 0:
        # Root may write everywhere, so the test makes the system answer as to other users.
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != app.parent)
    try:
        with pytest.raises(WorkspaceRefused):
            pull(app, BuildServer(NEW))
    finally:
        app.parent.chmod(0o700)

    assert is_build(app, OLD)


def test_too_little_room_is_found_before_anything_is_fetched(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_status = os.statvfs(app)

    class Room:
        f_bavail, f_frsize, f_files, f_favail = 10, real_status.f_frsize, real_status.f_files, real_status.f_favail

    monkeypatch.setattr(os, "statvfs", lambda path: Room)
    shelf = BuildServer(NEW)

    with pytest.raises(StorageFull):
        pull(app, shelf)

    assert shelf.served == {}
    assert is_build(app, OLD)
    assert not side_folder(app).exists()


def test_links_that_lead_outside_only_together_are_refused(tmp_path: Path) -> None:
    links = {"d/up": "..", "d/out": "up/../x"}

    with pytest.raises(ManifestRefused):
        pull(tmp_path / "app", BuildServer(build("1.0", {"file": b"x"}, links=links)))
