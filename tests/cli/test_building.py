"""What `push` says of the build: made, refused, or still waiting for a worker."""

from collections.abc import Callable
from typing import Any

import pytest

from countersign.cli import building
from countersign.cli.connection import Server
from countersign.cli.output import Exit, Failure
from tests.cli.conftest import Scripted


def job(status: str, **members: Any) -> dict[str, Any]:
    return {"job_id": "0199", "status": status, "progress": 0, **members}


@pytest.fixture
def server(scripted: Callable[[], Scripted], monkeypatch: pytest.MonkeyPatch) -> tuple[Scripted, Server]:
    """A store that says what it is told, and somebody who may ask it."""
    monkeypatch.setenv("COUNTERSIGN_TOKEN", "any")
    monkeypatch.setattr(building, "LOOK_AGAIN_S", 0.01)
    store = scripted()
    return store, Server(store.url)


def test_a_build_that_is_made_is_told(server: tuple[Scripted, Server]) -> None:
    made = {"manifest_sha256": "a", "files": 2, "size": 10, "chunks": 2, "new_chunks": 1, "stored": 5}
    server[0].say(202, job("queued"))
    server[0].say(200, job("running"))
    server[0].say(200, job("completed", result=made))

    built = building.build(server[1], "artifact", 10, "cannot push")

    assert built is not None
    assert (built.files, built.stored) == (2, 5)


def test_what_is_refused_is_told_with_the_remedy(server: tuple[Scripted, Server]) -> None:
    problem = {"code": "archive_refused", "status": 422, "detail": "../a: leaves", "resolution": "Pack it anew."}
    server[0].say(200, job("failed", error=problem))

    with pytest.raises(Failure) as failure:
        building.build(server[1], "artifact", 10, "cannot push")

    assert (failure.value.problem, failure.value.why) == ("archive_refused", "../a: leaves")
    assert failure.value.remedy == "Pack it anew."
    assert failure.value.exit_code != Exit.OK


def test_nobody_waits_for_a_worker_that_is_not_there(
    server: tuple[Scripted, Server], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(building, "QUEUE_PATIENCE_S", 0)
    server[0].say(202, job("queued"))

    assert building.build(server[1], "artifact", 10, "cannot push") is None
    assert "No worker" in capsys.readouterr().err
