"""The master key: its sources, and that no other user can read or replace it."""

import ast
import base64
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from countersign.kernel.security.masterkey import Key, MasterKey, MasterKeyRefused, load_master_key, master_key
from countersign.settings import BadSetting, Settings
from tests.source import sources

_BYTES = bytes(range(32))
_TEXT = base64.b64encode(_BYTES).decode()
_OTHER = base64.b64encode(bytes(32)).decode()


def test_a_key_without_a_name_is_called_by_its_digest() -> None:
    master = load_master_key(_TEXT, None, None)

    assert master == MasterKey((Key(hashlib.sha256(_BYTES).hexdigest()[:8], _BYTES),))


def test_named_keys_keep_their_order_and_the_first_is_current() -> None:
    master = load_master_key(f" 2026-11:{_TEXT}, old:{_OTHER}\n", None, None)

    assert [key.id for key in master.keys] == ["2026-11", "old"]
    assert master.current.material == _BYTES
    assert master.named("old") == Key("old", bytes(32))
    assert master.named("none") is None


def test_url_safe_and_unpadded_base64_is_the_same_key() -> None:
    material = b"\xfb\xff" * 16

    key_text = base64.urlsafe_b64encode(material).decode().rstrip("=")

    assert load_master_key(key_text, None, None).current.material == material


@pytest.mark.parametrize(
    "value",
    ["", "  ", "not base64!", "c2hvcnQ=", f"{_TEXT},", f":{_TEXT}", f"a b:{_TEXT}", f"{'i' * 33}:{_TEXT}",
     f"a:{_TEXT},a:{_OTHER}", f"a:{_TEXT},b:{_TEXT}", base64.b64encode(bytes(33)).decode()],
)  # fmt: skip
def test_a_malformed_value_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(MasterKeyRefused) as refusal:
        load_master_key(value, None, None)

    assert refusal.value.remedy
    assert _TEXT not in str(refusal.value)


def test_a_key_never_shows_in_a_repr() -> None:
    key_repr = repr(load_master_key(_TEXT, None, None))

    assert repr(_BYTES) not in key_repr
    assert _TEXT not in key_repr


def test_a_value_and_a_file_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MasterKeyRefused, match="twice"):
        load_master_key(_TEXT, tmp_path / "key", None)


def test_a_missing_key_without_a_place_to_store_a_new_key_is_refused() -> None:
    with pytest.raises(MasterKeyRefused, match="no data directory"):
        load_master_key(None, None, None)


def test_the_data_directory_gets_a_key_of_its_own_once(tmp_path: Path) -> None:
    directory = tmp_path / "data"

    first_key = load_master_key(None, None, directory)
    second_key = load_master_key(None, None, directory)

    assert first_key == second_key
    assert [path.name for path in directory.iterdir()] == ["master.key"]
    assert (directory / "master.key").stat().st_mode & 0o777 == 0o600
    assert load_master_key(None, None, tmp_path / "elsewhere") != first_key


def test_a_key_file_has_precedence_over_the_data_directory(tmp_path: Path) -> None:
    path = _key_file(tmp_path, 0o600)

    assert load_master_key(None, path, tmp_path / "data").current.material == _BYTES
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610, 0o644])
def test_a_key_file_open_to_others_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    path = _key_file(tmp_path, mode)

    with pytest.raises(MasterKeyRefused) as refusal:
        load_master_key(None, path, None)

    assert f"chmod 600 {path}" in refusal.value.remedy
    assert _TEXT not in f"{refusal.value} {refusal.value.remedy}"


def test_a_missing_key_file_is_refused_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(MasterKeyRefused, match="cannot be read"):
        load_master_key(None, tmp_path / "none.key", tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_directory_as_key_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MasterKeyRefused, match="regular file"):
        load_master_key(None, tmp_path, None)


def test_an_unwritable_data_directory_is_refused_with_the_remedy(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")

    with pytest.raises(MasterKeyRefused, match="cannot be made") as refusal:
        load_master_key(None, None, blocked)

    assert "COUNTERSIGN_MASTER_KEY" in refusal.value.remedy


def test_processes_that_start_at_once_get_the_same_key(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; "
        "from countersign.kernel.security.masterkey import load_master_key; sys.stdin.read(); "
        "print(load_master_key(None, None, Path(sys.argv[1])).current.id)"
    )
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]

    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.close()
    names: set[str] = set()
    for starter in starters:
        assert starter.stdout is not None
        names.add(starter.stdout.read())
        starter.stdout.close()
        assert starter.wait(30) == 0

    assert len(names) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["master.key"]


def _key_file(directory: Path, mode: int) -> Path:
    path = directory / "given.key"
    path.write_text(_TEXT + "\n")
    path.chmod(mode)
    return path


def test_no_key_is_created_for_a_database_encrypted_with_another_key(tmp_path: Path) -> None:
    (tmp_path / "distribution.sqlite").touch()

    with pytest.raises(MasterKeyRefused, match="is missing") as refusal:
        load_master_key(None, None, tmp_path)

    assert "Restore your copy of the key" in refusal.value.remedy
    assert not (tmp_path / "master.key").exists()


def test_with_postgresql_a_missing_key_is_refused_with_the_expected_place_and_never_created(
    tmp_path: Path,
) -> None:
    settings = Settings(data=str(tmp_path), database_url="postgresql://db/store")
    with pytest.raises(BadSetting) as elsewhere_error:
        master_key(settings)
    (tmp_path / "master.key").write_text(_TEXT)
    with pytest.raises(BadSetting) as error_here:
        master_key(settings)

    assert "to the key of this installation; after a move it is master.key in the old data" in str(
        elsewhere_error.value
    )
    assert f"Set COUNTERSIGN_MASTER_KEY_FILE={tmp_path / 'master.key'}, " in str(error_here.value)


def test_no_text_of_the_product_advises_to_make_another_key_when_a_key_is_refused() -> None:
    texts = {
        str(node.value)
        for source in sources()
        for node in source.nodes
        if isinstance(node, ast.Constant) and "openssl rand" in str(node.value)
    }

    passphrase = "Choose a longer passphrase, such as five random words, or: openssl rand -base64 24"
    assert texts == {passphrase}, "a passphrase's"
