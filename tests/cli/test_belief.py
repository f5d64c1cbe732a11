"""What a pull believes of a store that lies."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from countersign.cli.output import Exit
from countersign.kernel import clock
from countersign.updates import trust
from countersign.updates.wire import ChannelState, Statement
from tests.cli.conftest import Run, Scripted
from tests.updates.builds import KEY, Build, build

NAMED = build("2.0", {"tool": b"the real one"})
OTHER = build("2.0", {"tool": b"another one, signed too"})


def script(
    store: Scripted, shown: Build, *, named: Build = NAMED, product_id: str = "0199", seconds: int = 3600
) -> None:
    """Answer as a store whose channel names one build, and which shows another."""
    now = clock.now()
    times = clock.rfc3339(now), clock.rfc3339(clock.later(now, seconds=seconds))
    statement = Statement("toolsmith", product_id, "bench", "stable", "2.0", {"": named.sha256}, 5, *times)
    product = {"id": "0199", "slug": "bench", "title": "B", "kind": "tool", "platforms": ["linux"], "org": "toolsmith"}
    store.say(200, product)
    store.say(200, msgspec.to_builtins(ChannelState(trust.state(statement, KEY), KEY.public, [])))
    store.say(200, msgspec.to_builtins(shown.release().envelope))


@pytest.mark.parametrize(("shown", "word"), [(OTHER, "not the one that the channel's statement names")], ids=["other"])
def test_a_signed_manifest_that_the_statement_does_not_name_is_refused(
    run: Run, scripted: Callable[[], Scripted], shown: Build, word: str
) -> None:
    store = scripted()
    script(store, shown)

    refused = run("pull", "toolsmith/bench", "app", "--server", store.url)

    assert refused.returncode == Exit.FAILED
    assert word in refused.stderr


def test_a_statement_that_has_expired_is_refused(run: Run, scripted: Callable[[], Scripted]) -> None:
    store = scripted()
    script(store, NAMED, seconds=-1)

    refused = run("pull", "toolsmith/bench", "app", "--server", store.url)

    assert refused.returncode == Exit.CONFLICT
    assert "expired" in refused.stderr


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"product_id": "0200"}, "another product or version"),
        ({"org": "somebody"}, "another product or version"),
        ({"version": "1.0"}, "another product or version"),
        ({"platform": "windows"}, "another platform"),
    ],
    ids=["product", "organisation", "version", "platform"],
)
def test_a_manifest_of_something_else_is_refused_though_it_is_signed_and_named(
    run: Run, scripted: Callable[[], Scripted], change: dict[str, str], word: str
) -> None:
    store = scripted()
    other = replace(NAMED, manifest=msgspec.structs.replace(NAMED.manifest, **change))
    script(store, other, named=other)

    refused = run("pull", "toolsmith/bench", "app", "--server", store.url)

    assert refused.returncode == Exit.FAILED
    assert word in refused.stderr


def test_a_statement_about_another_product_of_the_organisation_is_refused(
    run: Run, scripted: Callable[[], Scripted]
) -> None:
    store = scripted()
    script(store, NAMED, product_id="0200")

    refused = run("pull", "toolsmith/bench", "app", "--server", store.url)

    assert "the statement is of another product" in refused.stderr
