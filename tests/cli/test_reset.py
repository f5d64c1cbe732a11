"""`countersign reset` lists all data of an installation, and removes it after confirmation."""

import asyncio
import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from countersign.cli.admin import reset
from countersign.cli.output import Exit
from countersign.kernel.blobs.open import open_blobs
from countersign.kernel.blobs.port import BlobStore
from tests.cli.conftest import Run
from tests.servers.countersign import COMMAND, MASTER_KEY, environment, served
from tests.servers.postgres import PostgresFactory
from tests.servers.s3 import Bucket

KEYS = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}


def prepare(data: Path, **settings: str) -> None:
    """Create both services' databases and the other files of a data directory."""
    for subcommand in (["org", "create", "acme", "--name", "Acme"], ["modules", "apply"]):
        subprocess.run(
            [*COMMAND, *subcommand, "--data", data], env=environment(**settings), check=True, capture_output=True
        )
    (data / "countersign.toml").write_text("log_requests = true\n")
    (data / "notes.txt").write_text("the operator's own")
    for name in ("blobs/sealed/ab/cd", "blobs/staging/up", "mail", "work/job-1", "sandboxes/one"):
        (data / name).mkdir(parents=True)
        (data / name / "something").write_bytes(b"x")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation on SQLite, which tests copy."""
    data = tmp_path_factory.mktemp("template") / "data"
    prepare(data)
    return data


@pytest.fixture
def data(template: Path, tmp_path: Path) -> Path:
    """A copy of the installation on SQLite for one test."""
    return shutil.copytree(template, tmp_path / "data")


def names(folder: Path) -> set[str]:
    """Return the names in the folder."""
    return {path.name for path in folder.iterdir()}


def tree(folder: Path) -> set[Path]:
    """Return all files and folders below the folder."""
    return set(folder.rglob("*"))


def test_nothing_is_removed_before_the_list_is_shown_and_confirmed(run: Run, data: Path) -> None:
    tree_before = tree(data)

    result = run("reset", "--data", data)
    planned_result = run("reset", "--dry-run", "--json", "--data", data)

    assert result.returncode == Exit.USAGE
    assert "Run it again with --yes." in result.stderr
    for name in ("distribution.sqlite", "records.sqlite", "blobs/", "mail/", "work/", "sandboxes/", "master.key"):
        assert str(data / name) in result.stderr
    assert planned_result.returncode == Exit.OK
    assert json.loads(planned_result.stdout)["removed"] is False
    assert json.loads(planned_result.stdout)["left"] == [str(data / "countersign.toml"), str(data / "notes.txt")]
    assert tree(data) == tree_before


def test_all_files_of_an_installation_are_removed_and_files_of_the_operator_are_kept(run: Run, data: Path) -> None:
    result = run("reset", "--yes", "--data", data)
    second_result = run("reset", "--yes", "--data", data)
    created_result = run("org", "create", "acme", "--name", "Acme", "--data", data)

    assert result.returncode == second_result.returncode == created_result.returncode == Exit.OK, (
        result.stderr + second_result.stderr + created_result.stderr
    )
    assert "There is nothing to remove" in second_result.stdout
    assert f"Left in place: {data / 'notes.txt'}" in result.stderr
    assert {"countersign.toml", "notes.txt", "distribution.sqlite", "master.key"} <= names(data)


def test_everything_that_a_server_makes_in_its_data_directory_is_known(run: Run, tmp_path: Path) -> None:
    with served(tmp_path / "data", "--demo", service="both") as server:
        refused_result = run("reset", "--yes", "--data", server.data)
        tree_before = tree(server.data)
    result = run("reset", "--yes", "--data", server.data)

    assert refused_result.returncode == Exit.CONFLICT
    assert "is served" in refused_result.stderr
    assert tree_before
    assert result.returncode == Exit.OK, result.stderr
    assert tree(server.data) == set()


@pytest.mark.parametrize("name", ["blobs", "blobs/sealed", "mail"])
def test_the_target_of_a_link_is_kept_and_named(run: Run, data: Path, tmp_path: Path, name: str) -> None:
    """The links in a copied data directory lead to the files of the original."""
    volume = (data / name).rename(tmp_path / "volume")
    (data / name).symlink_to(volume)
    tree_before = tree(volume)

    result = run("reset", "--yes", "--data", data)

    assert result.returncode == Exit.OK, result.stderr
    assert tree(volume) == tree_before != set()
    assert f"Left in place: {volume}, to which the link {data / name} leads" in result.stderr
    assert f"rm -r -- {volume}" in result.stderr
    assert names(data) == {"countersign.toml", "notes.txt"}


def test_a_link_to_another_place_in_the_data_directory_is_emptied(run: Run, data: Path) -> None:
    (data / "blobs").rename(data / "volume")
    (data / "volume" / "lost+found").mkdir()
    (data / "blobs").symlink_to("volume")

    result = run("reset", "--yes", "--data", data)

    assert result.returncode == Exit.OK, result.stderr
    assert names(data / "volume") == {"lost+found"}
    assert names(data) == {"countersign.toml", "notes.txt", "volume"}


async def put(blobs: BlobStore, content: bytes) -> None:
    """Store one file."""

    async def pieces():
        yield content

    staged_part = await blobs.stage("up", 0, pieces())
    await blobs.seal("up", [staged_part], len(content), None)


async def count(blobs: BlobStore) -> int:
    """Return the count of stored files and of uploads in progress."""
    return len([None async for _ in blobs.sealed_blobs()]) + len([None async for _ in blobs.staged_uploads()])


def test_postgresql_and_a_bucket_are_emptied_and_their_neighbours_stay(
    run: Run, tmp_path: Path, new_postgres_url: PostgresFactory, s3_url: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    bucket_url = f"s3://{s3_url.name}/{{}}?endpoint={s3_url.endpoint}&region=us-east-1&allow_http=true"
    url, blobs_url = new_postgres_url(), bucket_url.format("here")
    settings = {"COUNTERSIGN_DATABASE_URL": url, "COUNTERSIGN_MASTER_KEY": MASTER_KEY}
    settings |= {"COUNTERSIGN_BLOBS_URL": blobs_url, **KEYS}
    data = tmp_path / "data"
    prepare(data, **settings)
    own_blobs, neighbour = (open_blobs(bucket_url.format(name), data) for name in ("here", "neighbour"))
    for folder in (own_blobs, neighbour):
        asyncio.run(put(folder, b"content"))
    with served(data, service="distribution", settings=settings):
        foreign_result = run("reset", "--yes", "--data", tmp_path / "other", **settings)

    blobs_option = ("--blobs", f"{s3_url.name}/here")
    planned_result = run("reset", "--dry-run", *blobs_option, "--data", data, **settings)
    result = run("reset", "--yes", "--json", *blobs_option, "--data", data, **settings)
    second_result = run("reset", "--yes", *blobs_option, "--data", data, **settings)

    assert foreign_result.returncode == Exit.CONFLICT
    assert "a service is connected to the database" in foreign_result.stderr
    assert "the schema distribution with " in planned_result.stdout
    assert f"{blobs_url}: 1 files, 1 uploads in progress" in planned_result.stdout
    assert result.returncode == second_result.returncode == Exit.OK, result.stderr + second_result.stderr
    assert json.loads(result.stdout)["schemas"].keys() == {"distribution", "records"}
    assert "There is nothing to remove" in second_result.stdout
    assert asyncio.run(count(own_blobs)) == 0
    assert asyncio.run(count(neighbour)) == 2
    assert names(data) == {"countersign.toml", "notes.txt"}


class BucketInstallation(NamedTuple):
    """An installation that stores its files in a bucket."""

    data: Path
    url: str
    settings: dict[str, str]
    blobs: BlobStore

    @property
    def name(self) -> str:
        """The value for `--blobs`."""
        return self.url.removeprefix("s3://").partition("?")[0]


@pytest.fixture
def in_bucket(data: Path, s3_url: Bucket, monkeypatch: pytest.MonkeyPatch) -> BucketInstallation:
    """An installation on SQLite whose bucket has one file and one upload."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    url = f"s3://{s3_url.name}/here?endpoint={s3_url.endpoint}&region=us-east-1&allow_http=true"
    blobs = open_blobs(url, data)
    asyncio.run(put(blobs, b"content"))
    asyncio.run(blobs.mark((data / "installation.json").read_bytes(), is_new=True))
    return BucketInstallation(data, url, {"COUNTERSIGN_BLOBS_URL": url, **KEYS}, blobs)


def test_a_bucket_is_kept_unless_the_command_names_the_bucket(run: Run, in_bucket: BucketInstallation) -> None:
    other_result = run("reset", "--yes", "--blobs", "another/here", "--data", in_bucket.data, **in_bucket.settings)
    assert "master.key" in names(in_bucket.data)
    result = run("reset", "--yes", "--data", in_bucket.data, **in_bucket.settings)

    assert other_result.returncode == Exit.USAGE
    assert "--blobs names another/here" in other_result.stderr
    assert result.returncode == Exit.OK, result.stderr
    assert "Left in place: 1 files and 1 uploads in progress in s3://" in result.stderr
    assert asyncio.run(count(in_bucket.blobs)) == 2


def test_the_named_bucket_is_cleared_by_its_installation(run: Run, in_bucket: BucketInstallation) -> None:
    result = run("reset", "--yes", "--blobs", in_bucket.name, "--data", in_bucket.data, **in_bucket.settings)

    assert result.returncode == Exit.OK, result.stderr
    assert asyncio.run(count(in_bucket.blobs)) == 0
    assert names(in_bucket.data) == {"countersign.toml", "notes.txt"}


def test_a_copy_does_not_clear_the_bucket_that_its_original_went_on_with(
    run: Run, in_bucket: BucketInstallation
) -> None:
    own_id = json.loads((in_bucket.data / "installation.json").read_bytes())["id"]
    asyncio.run(in_bucket.blobs.mark(json.dumps({"id": own_id, "collected_at": 10**18}).encode(), is_new=False))
    tree_before = tree(in_bucket.data)

    result = run("reset", "--yes", "--blobs", in_bucket.name, "--data", in_bucket.data, **in_bucket.settings)

    assert result.returncode == Exit.CONFLICT
    assert "a later state of this database, or by another copy of it" in result.stderr
    assert asyncio.run(count(in_bucket.blobs)) == 2
    assert tree(in_bucket.data) == tree_before


@pytest.mark.parametrize("missing", ["distribution.sqlite", "installation.json", "everything"])
def test_a_bucket_is_not_cleared_without_its_database_and_directory(
    run: Run, in_bucket: BucketInstallation, missing: str
) -> None:
    if missing == "everything":
        shutil.rmtree(in_bucket.data)
        in_bucket.data.mkdir()
    else:
        for path in in_bucket.data.glob("*.sqlite*" if missing.endswith("sqlite") else missing):
            path.unlink()
    tree_before = tree(in_bucket.data)

    result = run("reset", "--yes", "--blobs", in_bucket.name, "--data", in_bucket.data, **in_bucket.settings)
    unnamed_result = run("reset", "--dry-run", "--data", in_bucket.data, **in_bucket.settings)

    assert result.returncode == Exit.CONFLICT
    assert "the bucket belongs to the installation" in result.stderr
    assert unnamed_result.returncode == Exit.OK, unnamed_result.stderr
    assert asyncio.run(count(in_bucket.blobs)) == 2
    assert tree(in_bucket.data) == tree_before


def test_a_bucket_with_files_and_without_an_id_is_not_cleared(run: Run, in_bucket: BucketInstallation) -> None:
    asyncio.run(in_bucket.blobs.clear())
    asyncio.run(put(in_bucket.blobs, b"content"))

    result = run("reset", "--yes", "--blobs", in_bucket.name, "--data", in_bucket.data, **in_bucket.settings)

    assert result.returncode == Exit.CONFLICT
    assert "the bucket has files but no readable installation id" in result.stderr
    assert asyncio.run(count(in_bucket.blobs)) == 2


def test_another_installations_database_is_not_removed_by_a_wrong_setting(
    run: Run, tmp_path: Path, new_postgres_url: PostgresFactory
) -> None:
    key = {"COUNTERSIGN_MASTER_KEY": MASTER_KEY}
    own_settings, other_settings = ({"COUNTERSIGN_DATABASE_URL": new_postgres_url(), **key} for _ in range(2))
    for data, settings in (("mine", own_settings), ("other", other_settings)):
        assert run("org", "create", "acme", "--name", "Acme", "--data", data, **settings).returncode == Exit.OK

    wrong_result = run("reset", "--yes", "--data", "mine", **other_settings)
    keyless_result = run("reset", "--yes", "--data", "mine")
    kept_result = run("keys", "status", "--data", "other", **other_settings)

    assert wrong_result.returncode == keyless_result.returncode == Exit.CONFLICT
    assert "belongs to the database" in wrong_result.stderr
    assert "Set COUNTERSIGN_DATABASE_URL" in keyless_result.stderr
    assert kept_result.returncode == Exit.OK


def test_a_view_of_another_schema_is_named_and_not_dropped_with_the_tables(
    run: Run, tmp_path: Path, new_postgres_url: PostgresFactory
) -> None:
    settings = {"COUNTERSIGN_DATABASE_URL": new_postgres_url(), "COUNTERSIGN_MASTER_KEY": MASTER_KEY}
    run("org", "create", "acme", "--name", "Acme", "--data", "data", **settings)
    view = "CREATE VIEW public.people AS SELECT email FROM distribution.person"
    subprocess.run(["psql", "-qc", view, settings["COUNTERSIGN_DATABASE_URL"]], check=True)

    result = run("reset", "--yes", "--data", "data", **settings)

    assert result.returncode == Exit.CONFLICT
    assert "depend on the tables: people" in result.stderr.replace("public.", "")
    assert run("keys", "status", "--data", "data", **settings).returncode == Exit.OK


def test_an_interrupted_removal_is_completed_by_the_same_command(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed_paths: list[Path] = []

    class SimulatedKill(BaseException):
        pass

    def kill(path: Path) -> None:
        if len(removed_paths) == 2:
            raise SimulatedKill
        removed_paths.append(path)
        remove(path)

    remove = reset._remove_path  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(reset, "_remove_path", kill)
    with pytest.raises(SimulatedKill):
        reset.reset.main(["--yes", "--data", str(data)], standalone_mode=False)
    monkeypatch.setattr(reset, "_remove_path", remove)
    assert removed_paths
    assert "master.key" in names(data), "the key goes last"

    reset.reset.main(["--yes", "--data", str(data)], standalone_mode=False)

    assert names(data) == {"countersign.toml", "notes.txt"}
