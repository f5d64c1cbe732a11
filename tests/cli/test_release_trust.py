"""A pull refuses the data of a store that gives false answers."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from countersign.cli.client import api_models, release_trust
from countersign.cli.client.connection import Server
from countersign.cli.client.release_trust import PullRequest
from countersign.cli.options import ProductName
from countersign.cli.output import Exit, Failure
from countersign.kernel import clock
from countersign.updates import trust
from countersign.updates.api_types import ChannelState, ChannelStatement
from countersign.updates.dsse import SigningKey, new_signing_key
from tests.cli.conftest import Run, ScriptedServer
from tests.updates.builds import KEY, SampleBuild, build

NAMED = build("2.0", {"tool": b"the real one"})
OTHER = build("2.0", {"tool": b"another one, signed too"})


def script(
    store: ScriptedServer,
    shown: SampleBuild,
    *,
    named: SampleBuild = NAMED,
    product_id: str = "0199",
    seconds: int = 3600,
    key: SigningKey = KEY,
) -> None:
    """Script a store whose channel names one build, and which shows another build."""
    now = clock.now()
    times = clock.rfc3339(now), clock.rfc3339(clock.later(now, seconds=seconds))
    statement = ChannelStatement("toolsmith", product_id, "bench", "stable", "2.0", {"": named.sha256}, 5, *times)
    product = {"id": "0199", "slug": "bench", "title": "B", "kind": "tool", "platforms": ["linux"], "org": "toolsmith"}
    store.say(200, product)
    store.say(200, msgspec.to_builtins(ChannelState(trust.sign_statement(statement, key), key.public, [])))
    store.say(200, msgspec.to_builtins(shown.release().envelope))


@pytest.mark.parametrize(
    ("shown", "expected_word"), [(OTHER, "the channel's statement names another manifest")], ids=["other"]
)
def test_a_signed_manifest_that_the_statement_does_not_name_is_refused(
    run: Run, scripted: Callable[[], ScriptedServer], shown: SampleBuild, expected_word: str
) -> None:
    store = scripted()
    script(store, shown)

    refused_result = run("pull", "toolsmith/bench", "app", "--server", store.url)

    assert refused_result.returncode == Exit.FAILED
    assert expected_word in refused_result.stderr


def test_a_statement_that_has_expired_is_refused(run: Run, scripted: Callable[[], ScriptedServer]) -> None:
    store = scripted()
    script(store, NAMED, seconds=-1)

    refused_result = run("pull", "toolsmith/bench", "app", "--server", store.url)

    assert refused_result.returncode == Exit.CONFLICT
    assert "expired" in refused_result.stderr


@pytest.mark.parametrize(
    ("change", "expected_word"),
    [
        ({"product_id": "0200"}, "another product or version"),
        ({"org": "somebody"}, "another product or version"),
        ({"version": "1.0"}, "another product or version"),
        ({"platform": "windows"}, "another platform"),
    ],
    ids=["product", "organisation", "version", "platform"],
)
def test_a_signed_and_named_manifest_of_another_build_is_refused(
    run: Run, scripted: Callable[[], ScriptedServer], change: dict[str, str], expected_word: str
) -> None:
    store = scripted()
    other_build = replace(NAMED, manifest=msgspec.structs.replace(NAMED.manifest, **change))
    script(store, other_build, named=other_build)

    refused_result = run("pull", "toolsmith/bench", "app", "--server", store.url)

    assert refused_result.returncode == Exit.FAILED
    assert expected_word in refused_result.stderr


def test_a_statement_about_another_product_of_the_organisation_is_refused(
    run: Run, scripted: Callable[[], ScriptedServer]
) -> None:
    store = scripted()
    script(store, NAMED, product_id="0200")

    refused_result = run("pull", "toolsmith/bench", "app", "--server", store.url)

    assert "the statement belongs to another product" in refused_result.stderr


def release_entry(version: str, *platforms: str, status: str | None = None) -> dict[str, object]:
    """Return a release as the store lists it."""
    files = [{"id": version, "filename": f"{platform}.zip", "size": 1, "platform": platform} for platform in platforms]
    return {"version": version, "channel": "stable", "artifacts": files, "status": status}


def test_a_pull_falls_back_to_the_newest_release_that_has_the_platform(
    scripted: Callable[[], ScriptedServer],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("COUNTERSIGN_TOKEN", "any")
    store, now = scripted(), clock.now()
    times = clock.rfc3339(now), clock.rfc3339(clock.later(now, seconds=3600))
    statement = ChannelStatement("toolsmith", "0199", "bench", "stable", "4.0", {"windows": "0" * 64}, 5, *times)
    channel_state = msgspec.to_builtins(ChannelState(trust.sign_statement(statement, KEY), KEY.public, []))
    linux = replace(OTHER, manifest=msgspec.structs.replace(OTHER.manifest, platform="linux"))
    releases = [
        release_entry("4.0", "windows"),
        release_entry("3.0", "linux"),
        release_entry("2.1", "linux", status="yanked"),
        release_entry("2.0", "windows", "linux"),
        release_entry("1.0", "linux"),
    ]
    not_built = {"code": "not_processed", "status": 404, "detail": "not processed"}
    pull_request = PullRequest(ProductName("toolsmith", "bench"), "stable", None, "linux", tmp_path / "app")
    product = api_models.CatalogProduct("0199", "bench", "Bench", "tool", ["linux"], "toolsmith")

    store.say(200, channel_state)
    store.say(200, releases)
    store.say(404, not_built)
    envelope = msgspec.to_builtins(linux.release().envelope)
    store.say(200, envelope)
    store.say(200, envelope)
    release = release_trust.trusted_release(Server(store.url), product, pull_request)

    assert release.manifest.version == "2.0"
    assert "4.0 has no build for linux; 2.0 is the newest that has one." in capsys.readouterr().err

    store.say(200, channel_state)
    store.say(200, releases[:1])
    with pytest.raises(Failure) as failure:
        release_trust.trusted_release(Server(store.url), product, pull_request)
    assert (failure.value.exit_code, failure.value.why) == (Exit.NOT_FOUND, "4.0 has no build for linux")


def test_a_platform_of_a_product_without_builds_for_platforms_is_to_be_left_out(
    scripted: Callable[[], ScriptedServer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("COUNTERSIGN_TOKEN", "any")
    store, now = scripted(), clock.now()
    times = clock.rfc3339(now), clock.rfc3339(clock.later(now, seconds=3600))
    statement = ChannelStatement("toolsmith", "0199", "bench", "stable", "2.0", {"": NAMED.sha256}, 5, *times)
    pull_request = PullRequest(ProductName("toolsmith", "bench"), "stable", None, "windows", tmp_path / "app")
    store.say(200, msgspec.to_builtins(ChannelState(trust.sign_statement(statement, KEY), KEY.public, [])))
    store.say(200, [])

    product = api_models.CatalogProduct("0199", "bench", "B", "tool", ["linux"], "toolsmith")
    with pytest.raises(Failure) as failure:
        release_trust.trusted_release(Server(store.url), product, pull_request)

    assert failure.value.why == "2.0 has no build for windows"
    assert failure.value.remedy == "Leave out --platform: 2.0 has one build, for any platform."


def test_the_error_for_an_unlinked_key_names_the_command_that_forgets_the_pinned_key(
    run: Run, scripted: Callable[[], ScriptedServer]
) -> None:
    store = scripted()
    org = ("toolsmith", "--server", store.url)

    def pull(key: SigningKey) -> "subprocess.CompletedProcess[str]":
        script(store, NAMED, key=key)
        store.say(404, {"code": "resource_not_found", "detail": "no chunks"})
        result = run("pull", "toolsmith/bench", "app", "--server", store.url)
        store.answers.clear()
        return result

    pull(KEY)
    changed_result = pull(new_signing_key())
    unsure = run("unpin", *org)
    repeated_result = pull(new_signing_key())
    forgotten_result = run("unpin", *org, "--yes")

    assert changed_result.returncode == repeated_result.returncode == Exit.FAILED
    assert f"countersign unpin toolsmith --server {store.url}" in changed_result.stderr
    assert "reset" in changed_result.stderr
    assert unsure.returncode == Exit.USAGE
    assert "will trust any key" in unsure.stderr
    assert forgotten_result.stdout == f"Forgot the key {KEY.public.keyid} of toolsmith at {store.url}.\n"
    assert run("unpin", *org, "--yes").returncode == Exit.NOT_FOUND


def test_the_error_for_a_missing_version_names_the_command_that_lists_versions(
    run: Run, scripted: Callable[[], ScriptedServer]
) -> None:
    store = scripted()
    script(store, NAMED)
    store.answers[-1] = (404, {}, b'{"code": "resource_not_found", "detail": "the product has no release"}')

    result = run("pull", "toolsmith/bench", "app", "--version", "9.9", "--platform", "linux", "--server", store.url)

    assert result.returncode == Exit.NOT_FOUND
    assert "`countersign api GET products/bench/releases`" in result.stderr
