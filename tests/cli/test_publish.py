"""What `push` and `publish` refuse or report about a release of a scripted store."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from countersign.cli.client import api_models, codes, download, push
from countersign.cli.client.connection import Server
from countersign.cli.client.push import PushTarget
from countersign.cli.client.upload import Content
from countersign.cli.options import ProductName
from countersign.cli.output import Exit, Failure
from countersign.store.catalog.versions import is_lower
from tests.cli.conftest import ScriptedServer

PRODUCT: dict[str, Any] = {
    **{"id": "0199", "slug": "thing", "title": "Thing", "kind": "tool", "platforms": ["linux"], "org": "toolsmith"},
    "channels": [{"channel": "stable", "version": "1.10.0", "published_at": "2026-01-01T00:00:00Z"}],
}


@pytest.fixture
def store(scripted: Callable[[], ScriptedServer], monkeypatch: pytest.MonkeyPatch) -> ScriptedServer:
    """A scripted store, and a token for it."""
    monkeypatch.setenv("COUNTERSIGN_TOKEN", "any")
    return scripted()


def publish(store: ScriptedServer, *options: str) -> None:
    """Publish the draft 1.9.0, as the command does."""
    arguments = ["toolsmith/thing", "1.9.0", "--server", store.url, *options]
    push.publish.main(arguments, standalone_mode=False)


def deliver(store: ScriptedServer, version: str, platform: str | None = None, *, refuses_older: bool = False) -> object:
    """Push the file `a` of three bytes, as the command does."""
    push_target = PushTarget(Server(store.url), ProductName("toolsmith", "thing"), version, "stable", platform, None)
    push_target.refuses_older = refuses_older
    return push._deliver(push_target, Content(io.BytesIO(b"one"), "a", 3, "ab"))  # pyright: ignore[reportPrivateUsage]


def test_a_version_below_that_of_the_channel_is_published_only_where_that_is_meant(
    store: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    store.say(200, PRODUCT)
    store.say(200, [{"version": "1.9.0", "channel": "stable", "status": "draft"}])

    with pytest.raises(Failure) as refusal:
        publish(store)
    store.say(200, PRODUCT)
    store.say(200, {"version": "1.9.0", "channel": "stable"})
    publish(store, "--older")

    assert refusal.value.exit_code == Exit.CONFLICT
    assert "stable is at 1.10.0" in refusal.value.why
    assert "--older" in refusal.value.remedy
    assert [request.method for request in store.seen] == ["GET", "GET", "GET", "POST"]
    assert "1.9.0 is public" in capsys.readouterr().out


def test_a_lower_version_of_another_channel_is_published(store: ScriptedServer) -> None:
    store.say(200, PRODUCT)
    store.say(200, [{"version": "1.9.0", "channel": "beta", "status": "draft"}])
    store.say(200, {"version": "1.9.0", "channel": "beta"})

    publish(store)

    assert store.seen[-1].path.endswith("/releases/1.9.0/publish")


def test_a_push_that_would_move_the_channel_back_creates_no_draft(store: ScriptedServer) -> None:
    store.say(200, PRODUCT)
    store.say(200, [])
    store.say(200, [])

    with pytest.raises(Failure, match="cannot push") as refusal:
        deliver(store, "1.9.0", refuses_older=True)

    assert refusal.value.exit_code == Exit.CONFLICT
    assert {request.method for request in store.seen} == {"GET"}


def test_a_push_mentions_a_version_that_differs_by_trailing_zeros(
    store: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    store.say(200, PRODUCT)
    store.say(200, [])
    store.say(200, [{"version": "1.10.0", "channel": "stable"}])
    store.say(409, {"code": "filename_taken"})

    with pytest.raises(Failure):
        deliver(store, "1.10")

    assert "There is a release 1.10.0: 1.10 is a different version" in capsys.readouterr().err


def test_the_library_names_the_organisation_that_a_pull_needs(
    store: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    owned = {name: value for name, value in PRODUCT.items() if name not in ("org", "channels")}
    for options in ((), ("--json",)):
        store.say(200, [owned])
        store.say(200, {"results": [{"status": 200, "body": PRODUCT}]})
        codes.library.main(["--server", store.url, *options], standalone_mode=False)

    text_line, value = capsys.readouterr().out.splitlines()
    assert text_line == "toolsmith/thing\tThing\ttool\tlinux"
    assert json.loads(value) == [{**owned, "organization": "toolsmith"}]


def test_codes_on_a_screen_come_with_the_batch_that_a_revocation_names(
    store: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    store.say(201, {"batch_id": "0199-b", "codes": ["AAAAA", "BBBBB"]})

    codes.issue.main(["toolsmith/thing", "--kind", "license", "--server", store.url], standalone_mode=False)

    captured = capsys.readouterr()
    assert captured.out == "AAAAA\nBBBBB\n"
    assert "countersign api POST codes/0199-b/revoke" in captured.err


@pytest.mark.parametrize(
    ("stored_platform", "pushed_platform", "remedy"),
    [("linux", "windows", "Pass --platform linux"), ("linux", None, "--platform linux"), (None, "linux", "Leave out")],
)
def test_a_file_already_present_for_another_platform_is_a_conflict(
    store: ScriptedServer, stored_platform: str | None, pushed_platform: str | None, remedy: str
) -> None:
    artifact = {"id": "1", "filename": "a", "size": 3, "sha256": "ab", "platform": stored_platform}
    draft = {"version": "2.0", "channel": "stable", "status": "draft", "artifacts": [artifact]}
    store.say(200, PRODUCT)
    store.say(200, [draft])

    with pytest.raises(Failure) as refusal:
        deliver(store, "2.0", pushed_platform)
    store.say(200, PRODUCT)
    store.say(200, [draft])
    deliver(store, "2.0", stored_platform)

    assert refusal.value.exit_code == Exit.CONFLICT
    assert (
        f"a for {stored_platform or 'any platform'}, and this push is for {pushed_platform or 'any platform'}"
        in refusal.value.why
    )
    assert remedy in refusal.value.remedy


def test_a_download_with_a_platform_of_files_for_any_platform_says_to_omit_the_option() -> None:
    file_request = download.ArtifactRequest(ProductName("toolsmith", "thing"), None, None, "windows", None)

    with pytest.raises(Failure) as failure:
        download.select_file([api_models.Artifact("1", "a.zip", 3, "ab")], file_request)

    assert failure.value.remedy == "Leave out --platform; the release has: a.zip (any platform)."


def test_an_interrupted_upload_is_continued_only_for_its_own_platform(
    store: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for platform in ("linux", "windows"):
        store.say(200, PRODUCT)
        store.say(200, [{"version": "2.0", "channel": "stable", "status": "draft"}])
        url = f"{store.url}/api/v1/artifacts/uploads/{platform}"
        store.say(201, {"artifact_id": platform, "upload_url": url, "expires_at": ""})
        store.say(403, {"code": "forbidden"})

        with pytest.raises(Failure):
            deliver(store, "2.0", platform)

    assert [request.method for request in store.seen] == ["GET", "GET", "POST", "PUT"] * 2
    assert b'"platform":"windows"' in store.seen[-2].body


@pytest.mark.parametrize(
    ("version", "other_version", "expected"),
    [
        ("1.9.0", "1.10.0", True),
        ("2.0.0-rc.1", "2.0.0", True),
        ("2.0.0", "2.0.0-rc.1", False),
        ("2.0", "2.0.0", False),
        ("2.0.0", "2.0", False),
        ("build-10", "build-9", False),
        ("build-10", "1.0", False),
    ],
)
def test_a_version_is_lower_by_the_order_of_versions(version: str, other_version: str, *, expected: bool) -> None:
    assert is_lower(version, other_version) is expected


def test_a_refused_download_leaves_no_empty_file(store: ScriptedServer, tmp_path: Path) -> None:
    artifact = {"id": "7", "filename": "a.bin", "status": "ready", "size": 3, "sha256": "ab", "platform": None}
    store.say(200, PRODUCT)
    store.say(200, [{"version": "1.9.0", "channel": "stable", "artifacts": [artifact]}])
    store.say(403, {"code": "not_entitled", "detail": "the product is not in the caller's library"})
    arguments = ["toolsmith/thing", "--output", str(tmp_path / "a.bin"), "--server", store.url]

    with pytest.raises(Failure) as refusal:
        download.download.main(arguments, standalone_mode=False)

    assert refusal.value.exit_code == Exit.REFUSED
    assert not list(tmp_path.iterdir())
