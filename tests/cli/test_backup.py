"""Backups from the command line: refusals, output, and the state of a restored directory."""

import io
import json
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from countersign.backup.restore import RESTORED_SETTINGS
from countersign.cli import progress
from countersign.cli.output import Exit
from countersign.kernel.security.age import AgeEncryptor
from tests.cli.conftest import Run
from tests.servers.countersign import COMMAND, MASTER_KEY, environment
from tests.servers.postgres import Cluster, PostgresFactory
from tests.servers.s3 import Bucket

PASSPHRASE = {"COUNTERSIGN_BACKUP_PASSPHRASE": "correct horse battery staple"}
Settings = dict[str, str]

FAILS_AT_COMMIT = """
CREATE TABLE public.made (tag text);
CREATE FUNCTION public.note() RETURNS event_trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.made VALUES (tg_tag); END $$;
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON public.made DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION public.refuse();
CREATE EVENT TRIGGER noted ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION public.note();
"""
"""A CREATE TABLE succeeds at first, and fails with `disk_full` at COMMIT."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with both services' databases and one organisation, which tests copy."""
    folder = tmp_path_factory.mktemp("template") / "data"
    prepare(folder, {})
    return folder


@pytest.fixture
def data(template: Path, tmp_path: Path) -> Path:
    """A copy of the data directory for one test."""
    return shutil.copytree(template, tmp_path / "data")


def prepare(data: Path, settings: Settings) -> None:
    """Create both databases."""
    for subcommand in (["org", "create", "acme", "--name", "Acme"], ["modules", "apply"]):
        subprocess.run(
            [*COMMAND, *subcommand, "--data", data], env=environment(**settings), check=True, capture_output=True
        )


def json_output(result: "subprocess.CompletedProcess[str]") -> dict[str, object]:
    """Return the JSON that a command printed."""
    answer = json.loads(result.stdout)
    assert isinstance(answer, dict)
    return answer


def test_a_backup_is_restored_verified_and_used(run: Run, data: Path, tmp_path: Path) -> None:
    (data / "countersign.toml").write_text('resource_name = "Ours"\n')
    keep_options = ("--keep-sessions", "--keep-sending")

    created_result = run("backup", "one.backup", "--data", data, "--json", **PASSPHRASE)
    whole_result = run("verify", "one.backup", "--json", **PASSPHRASE)
    restored_result = run("restore", "one.backup", "--to", "copy", *keep_options, "--json", **PASSPHRASE)
    verify_result = run("verify", "copy", "--tables", "--json")
    original = run("verify", data, "--tables", "--json")
    second_result = run("org", "create", "acme", "--name", "Acme", "--data", "copy")

    assert (
        created_result.returncode
        == whole_result.returncode
        == restored_result.returncode
        == verify_result.returncode
        == Exit.OK
    ), created_result.stderr
    assert json_output(whole_result)["ok"] is json_output(verify_result)["ok"] is True
    assert (
        json_output(created_result)["moment"]
        == json_output(whole_result)["moment"]
        == json_output(restored_result)["moment"]
    )
    restored_tables, original_tables = json_output(verify_result)["tables"], json_output(original)["tables"]
    # A copy is an installation of its own.
    for schema in ("distribution", "records"):
        assert restored_tables.pop(f"{schema}.installation") != original_tables.pop(f"{schema}.installation")
    assert restored_tables == original_tables != {}
    assert second_result.returncode == Exit.CONFLICT
    copy = tmp_path / "copy"
    assert (copy / "master.key").stat().st_mode & 0o777 == 0o600
    # The copy does not start any of the original's configured actions by itself.
    assert not (copy / "countersign.toml").exists()
    assert "trusted issuers and webhooks" in restored_result.stderr
    assert (copy / RESTORED_SETTINGS).read_text() == 'resource_name = "Ours"\n'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "data", "one.backup"]


def test_the_archive_reveals_nothing_without_its_passphrase(run: Run, data: Path, tmp_path: Path) -> None:
    run("backup", "one.backup", "--data", data, **PASSPHRASE)

    archive = (tmp_path / "one.backup").read_bytes()
    wrong_passphrase = {"COUNTERSIGN_BACKUP_PASSPHRASE": "correct horse battery stable"}
    opened_result = run("restore", "one.backup", "--to", "copy", **wrong_passphrase)
    verify_result = run("verify", "one.backup", **wrong_passphrase)

    assert not [word for word in (b"acme", b"SQLite", b"master", b"CREATE", b"backup.json") if word in archive]
    assert opened_result.returncode == verify_result.returncode == Exit.REFUSED
    assert not (tmp_path / "copy").exists()


def test_the_passphrase_is_read_from_a_file_or_the_environment_and_has_a_minimum_length(
    run: Run, data: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("correct horse battery staple\n")
    secret.chmod(0o600)

    created_result = run("backup", "one.backup", "--data", data, "--passphrase-file", secret)
    same_result = run("verify", "one.backup", **PASSPHRASE)
    missing_result = run("backup", "two.backup", "--data", data)
    short = run("backup", "two.backup", "--data", data, COUNTERSIGN_BACKUP_PASSPHRASE="eleven char")
    blank = run("backup", "two.backup", "--data", data, COUNTERSIGN_BACKUP_PASSPHRASE="\n  word \n" + " " * 20)
    secret.write_text("x" * 5000)
    long = run("backup", "two.backup", "--data", data, "--passphrase-file", secret)
    secret.chmod(0o644)
    readable_by_others_result = run("backup", "two.backup", "--data", data, "--passphrase-file", secret)

    assert created_result.returncode == same_result.returncode == Exit.OK, created_result.stderr + same_result.stderr
    refused_results = (missing_result, short, blank, long, readable_by_others_result)
    assert {result.returncode for result in refused_results} == {Exit.USAGE}
    assert "chmod 600" in readable_by_others_result.stderr
    assert not (tmp_path / "two.backup").exists()


def test_nothing_is_written_over(run: Run, data: Path, tmp_path: Path) -> None:
    run("backup", "one.backup", "--data", data, **PASSPHRASE)
    bytes_before = (tmp_path / "one.backup").read_bytes()

    created_result = run("backup", "one.backup", "--data", data, **PASSPHRASE)
    restored_result = run("restore", "one.backup", "--to", data, **PASSPHRASE)

    assert created_result.returncode == restored_result.returncode == Exit.CONFLICT
    assert (tmp_path / "one.backup").read_bytes() == bytes_before


def test_a_backup_series_is_pruned_and_a_restore_chooses_a_time(run: Run, data: Path, tmp_path: Path) -> None:
    odd_backup = tmp_path / "kept" / "countersign-20990101T000000.000000Z.backup"
    odd_backup.parent.mkdir()
    odd_backup.touch()
    moments = [
        json_output(run("backup", "--into", "kept", "--keep", "2", "--data", data, "--json", **PASSPHRASE))["moment"]
        for _ in range(3)
    ]

    # The printed moment lacks the microseconds of the file name, so it is a little before the third backup.
    chosen_result = run("restore", "kept", "--at", str(moments[2]), "--to", "one", "--json", **PASSPHRASE)
    too_early = run("restore", "kept", "--at", str(moments[0]), "--to", "two", **PASSPHRASE)

    assert len(list((tmp_path / "kept").iterdir())) == 1 + 2
    assert odd_backup.name in chosen_result.stderr
    assert json_output(chosen_result)["moment"] == moments[1]
    assert too_early.returncode == Exit.NOT_FOUND


def test_a_changed_archive_is_refused_and_the_place_is_named(run: Run, data: Path, tmp_path: Path) -> None:
    run("backup", "one.backup", "--data", data, **PASSPHRASE)
    archive = bytearray((tmp_path / "one.backup").read_bytes())
    archive[200_000] ^= 1
    (tmp_path / "changed").write_bytes(archive)

    verify_result = run("verify", "changed", "--json", **PASSPHRASE)
    restored_result = run("restore", "changed", "--to", "copy", **PASSPHRASE)

    (damaged_range,) = json.loads(verify_result.stdout)["damage"]
    assert damaged_range["start"] <= 200_000 < damaged_range["stop"]
    assert verify_result.returncode == restored_result.returncode == Exit.CHECKSUM
    assert sorted(path.name for path in tmp_path.iterdir()) == ["changed", "data", "one.backup"]


def test_a_backup_is_verified_while_read_from_stdin(data: Path, tmp_path: Path) -> None:
    def piped(*arguments: str | Path, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        command = [*COMMAND, *arguments]
        return subprocess.run(command, env=environment(**PASSPHRASE), input=stdin, capture_output=True, check=False)

    backup_result = piped("backup", "-", "--data", data)
    archive = backup_result.stdout
    changed_archive = bytearray(archive)
    for place in (100_000, 400_000):
        changed_archive[place] ^= 1

    whole_result = piped("verify", "-", stdin=archive)
    damaged_result = piped("verify", "-", "--json", stdin=bytes(changed_archive))
    cut_result = piped("verify", "-", stdin=archive[:-100])
    empty_result = piped("verify", "-")

    assert f"-: {progress.size(len(archive))}, with 0 B in 0 files." in backup_result.stderr.decode()
    assert whole_result.returncode == Exit.OK
    assert whole_result.stdout.startswith(b"stdin is intact: 0 files")
    assert [result.returncode for result in (damaged_result, cut_result, empty_result)] == [Exit.CHECKSUM] * 3
    (place,) = json.loads(damaged_result.stdout)["damage"]
    assert place["start"] <= 100_000 < place["stop"]
    assert b"save the backup to a file" in damaged_result.stderr


@pytest.mark.parametrize("kept_part", ["header", "some", "most"])
def test_verify_and_restore_report_a_truncated_backup_as_truncated(
    run: Run, data: Path, tmp_path: Path, kept_part: str
) -> None:
    run("backup", "one.backup", "--data", data, **PASSPHRASE)
    backup_bytes = (tmp_path / "one.backup").read_bytes()
    length = {"header": 40, "some": 200_000, "most": len(backup_bytes) - 1}[kept_part]
    (tmp_path / "cut.backup").write_bytes(backup_bytes[:length])

    verify_result = run("verify", "cut.backup", **PASSPHRASE)
    piped_result = subprocess.run(
        [*COMMAND, "verify", "-"],
        env=environment(**PASSPHRASE),
        input=backup_bytes[:length],
        capture_output=True,
        check=False,
    )
    restored_result = run("restore", "cut.backup", "--to", "copy", **PASSPHRASE)

    assert verify_result.returncode == piped_result.returncode == restored_result.returncode == Exit.CHECKSUM
    verify_error = verify_result.stdout.strip().partition(": ")[2]
    assert verify_error.startswith("the archive ends too early")
    assert verify_error in restored_result.stderr
    assert verify_error in piped_result.stdout.decode()


def test_damage_of_a_data_directory_is_named(run: Run, data: Path) -> None:
    records = data / "records.sqlite"
    database_bytes = records.read_bytes()
    # The root page of a table: its page type.
    records.write_bytes(database_bytes[:8192] + b"\xff" + database_bytes[8193:])
    broken_result = run("verify", data, "--json")
    records.write_bytes(database_bytes)

    assert broken_result.returncode == Exit.CHECKSUM
    assert {finding["place"] for finding in json.loads(broken_result.stdout)["findings"]} == {"records"}
    assert run("verify", data).returncode == Exit.OK


def test_a_full_volume_leaves_nothing_behind(data: Path, tmp_path: Path) -> None:
    room = max(path.stat().st_size for path in data.glob("*.sqlite")) + 550_000

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))

    result = subprocess.run(
        [*COMMAND, "backup", tmp_path / "one.backup", "--data", data],
        env=environment(**PASSPHRASE),
        preexec_fn=small_files,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == Exit.STORAGE_FULL, result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]
    assert not list(data.glob(".countersign-*"))


def test_a_backup_of_postgresql_and_a_bucket_is_restored_into_another_database_and_bucket(
    run: Run, new_postgres_url: PostgresFactory, s3_url: Bucket, tmp_path: Path
) -> None:
    def settings(prefix: str) -> Settings:
        blobs_url = f"s3://{s3_url.name}/{prefix}?endpoint={s3_url.endpoint}&region=us-east-1&allow_http=true"
        keys = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any", "COUNTERSIGN_MASTER_KEY": MASTER_KEY}
        return {
            "COUNTERSIGN_DATABASE_URL": new_postgres_url(),
            "COUNTERSIGN_BLOBS_URL": blobs_url,
            **keys,
            **PASSPHRASE,
        }

    source_settings, target_settings = settings("here"), settings("there")
    prepare(tmp_path / "data", source_settings)

    created_result = run("backup", "one.backup", "--data", "data", **source_settings)
    without_database_result = run("restore", "one.backup", "--to", "copy", **PASSPHRASE)
    over = run("restore", "one.backup", "--to", "copy", **source_settings)
    restored_result = run("restore", "one.backup", "--to", "copy", **target_settings)
    verify_result = run("verify", "copy", **target_settings)
    second_result = run("org", "create", "acme", "--name", "Acme", "--data", "copy", **target_settings)
    repeated_result = run("restore", "one.backup", "--to", "other", **target_settings)

    assert created_result.returncode == restored_result.returncode == verify_result.returncode == Exit.OK, (
        created_result.stderr + restored_result.stderr
    )
    assert (
        without_database_result.returncode
        == over.returncode
        == repeated_result.returncode
        == second_result.returncode
        == Exit.CONFLICT
    )
    assert not (tmp_path / "copy" / "master.key").exists()
    assert not (tmp_path / "other").exists()


def test_an_existing_directory_is_filled_even_behind_a_link_or_as_a_volume_root(
    run: Run, data: Path, tmp_path: Path
) -> None:
    run("backup", "one.backup", "--data", data, **PASSPHRASE)
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "volume").mkdir()
    mounted_result = subprocess.run(
        ["mount", "-t", "tmpfs", "none", tmp_path / "volume"], capture_output=True, check=False
    )
    try:
        for name in ("linked", "volume"):
            restored_result = run("restore", "one.backup", "--to", name, **PASSPHRASE)
            assert restored_result.returncode == run("verify", name).returncode == Exit.OK, restored_result.stderr
    finally:
        if not mounted_result.returncode:
            subprocess.run(["umount", tmp_path / "volume"], check=True)

    assert (tmp_path / "linked").is_symlink()
    assert not list(tmp_path.glob("**/.countersign-*"))


def test_an_unsuitable_restore_target_is_refused_before_the_backup_is_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept").touch()

    results = [run("restore", "-", "--to", name, stdin="no backup", **PASSPHRASE) for name in ("full", "/proc/none/in")]

    assert [result.returncode for result in results] == [Exit.CONFLICT, Exit.UNREACHABLE]


def test_a_restore_that_fails_at_commit_keeps_the_master_key(
    run: Run, new_postgres_url: PostgresFactory, postgres_cluster: Cluster, tmp_path: Path
) -> None:
    source_settings = {
        "COUNTERSIGN_DATABASE_URL": new_postgres_url(),
        "COUNTERSIGN_MASTER_KEY": MASTER_KEY,
        **PASSPHRASE,
    }
    target_settings = {"COUNTERSIGN_DATABASE_URL": new_postgres_url(), **PASSPHRASE}
    prepare(tmp_path / "data", source_settings)
    run("backup", "one.backup", "--data", "data", **source_settings)
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to("real")
    connect = f"\\connect {target_settings['COUNTERSIGN_DATABASE_URL'].rpartition('/')[2]}"
    postgres_cluster.sql(connect, FAILS_AT_COMMIT)

    failed_result = run("restore", "one.backup", "--to", "linked", **target_settings)
    has_key = (tmp_path / "real" / "master.key").exists()
    shutil.rmtree(tmp_path / "real")
    (tmp_path / "real").mkdir()
    postgres_cluster.sql(connect, "DROP EVENT TRIGGER noted")
    restored_result = run("restore", "one.backup", "--to", "linked", **target_settings)
    key = {"COUNTERSIGN_MASTER_KEY_FILE": str(tmp_path / "real" / "master.key")}
    second_result = run("org", "create", "acme", "--name", "Acme", "--data", "linked", **target_settings, **key)

    assert failed_result.returncode == Exit.FAILED
    assert has_key
    assert "countersign verify" in failed_result.stderr
    assert restored_result.returncode == Exit.OK, restored_result.stderr
    assert second_result.returncode == Exit.CONFLICT, second_result.stderr


def test_an_archive_that_needs_too_much_memory_is_refused_with_the_reason(tmp_path: Path) -> None:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    def verify_memory(work: int) -> "subprocess.CompletedProcess[str]":
        stream = io.BytesIO()
        AgeEncryptor(stream.write, "any", work=1).finish()
        (tmp_path / "one.backup").write_bytes(stream.getvalue().replace(b" 1\n", b" %d\n" % work, 1))
        command = [*COMMAND, "verify", tmp_path / "one.backup"]
        variables = environment(**PASSPHRASE)
        return subprocess.run(
            command, env=variables, preexec_fn=limited, capture_output=True, text=True, check=False, timeout=120
        )

    allowed_work_result, excessive_work_result = verify_memory(20), verify_memory(21)

    assert allowed_work_result.returncode == Exit.UNREACHABLE
    assert "1024 MiB" in allowed_work_result.stderr
    assert excessive_work_result.returncode == Exit.CHECKSUM
