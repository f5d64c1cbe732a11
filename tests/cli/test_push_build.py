"""What `push` reports about the build: created, refused, or still waiting for a worker."""

from collections.abc import Callable
from typing import Any

import pytest

from countersign.cli.client import upload
from countersign.cli.client.connection import Server
from countersign.cli.output import Exit, Failure
from tests.cli.conftest import ScriptedServer


def job(status: str, **members: Any) -> dict[str, Any]:
    return {"job_id": "0199", "status": status, "progress": 0, **members}


@pytest.fixture
def server(scripted: Callable[[], ScriptedServer], monkeypatch: pytest.MonkeyPatch) -> tuple[ScriptedServer, Server]:
    """A scripted store, with a token for it."""
    monkeypatch.setenv("COUNTERSIGN_TOKEN", "any")
    monkeypatch.setattr(upload, "POLL_S", 0.01)
    store = scripted()
    return store, Server(store.url)


def test_a_build_that_is_made_is_reported(server: tuple[ScriptedServer, Server]) -> None:
    build_result = {"manifest_sha256": "a", "files": 2, "size": 10, "chunks": 2, "new_chunks": 1, "stored": 5}
    server[0].say(202, job("queued"))
    server[0].say(200, job("running"))
    server[0].say(200, job("completed", result=build_result))

    built = upload.build(server[1], "artifact", 10, "cannot push")

    assert (built.files, built.stored) == (2, 5)


def test_a_refused_build_is_reported_with_its_rule_and_the_remedy(server: tuple[ScriptedServer, Server]) -> None:
    problem = {"code": "archive_refused", "status": 422, "detail": "../a: leaves", "resolution": "Pack it anew."}
    server[0].say(200, job("failed", error={**problem, "rule": "escape", "entry": "../a"}))

    with pytest.raises(Failure) as failure:
        upload.build(server[1], "artifact", 10, "cannot push")

    assert (failure.value.problem, failure.value.why) == ("archive_refused", "../a: leaves (rule escape)")
    assert failure.value.remedy == "Pack it anew."
    assert failure.value.exit_code != Exit.OK


def test_a_push_waits_until_the_build_ends_and_reports_the_steps(
    server: tuple[ScriptedServer, Server], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(upload, "REPORT_EVERY_S", 0)
    build_result = {"manifest_sha256": "a", "files": 2, "size": 10, "chunks": 2, "new_chunks": 1, "stored": 5}
    for _ in range(100):
        server[0].say(202, job("queued"))
    server[0].say(200, job("running", progress=0.4))
    server[0].say(200, job("completed", result=build_result))

    assert upload.build(server[1], "artifact", 10, "cannot push").files == 2

    error_output = capsys.readouterr().err
    assert error_output.count("processing: waiting for a worker of the store") == 100
    assert "processing: 40%" in error_output


@pytest.mark.parametrize("result", [None, {"files": 2}, "made"])
def test_a_result_of_another_form_is_a_failure_of_the_command(
    server: tuple[ScriptedServer, Server], result: object
) -> None:
    server[0].say(200, job("completed", result=result))

    with pytest.raises(Failure, match="cannot push") as failure:
        upload.build(server[1], "artifact", 10, "cannot push")

    assert "the job's result is not understood" in failure.value.why
