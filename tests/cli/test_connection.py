"""The client repeats requests safely, sends each token only to its server, and maps refusals to exit codes."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from countersign.cli import output
from countersign.cli.output import Exit
from countersign.kernel.errors import NotFound, Refused, Unavailable
from countersign.records import app as records
from countersign.store import app as distribution
from countersign.store.catalog.products import ProductNotFound
from countersign.store.releases.download import NotEntitled
from tests.cli.conftest import Run, ScriptedServer
from tests.servers.countersign import Running

Make = Callable[[], ScriptedServer]
CALL = r"[A-Z]+ /api/v1/"
PRODUCT = {"id": "1", "slug": "thing", "title": "Thing", "kind": "tool", "platforms": ["linux"], "org": "toolsmith"}
REDEEMED = {"success": True, "product_id": "1", "products": ["1"], "already_owned": False}


def problem(status: int, code: str = "", detail: str = "because", resolution: str = "do that") -> dict[str, object]:
    """Return a problem document."""
    return {"status": status, "code": code, "detail": detail, "resolution": resolution}


def test_a_redemption_with_a_lost_answer_is_repeated_with_the_same_key(run: Run, scripted: Make) -> None:
    server = scripted()
    server.answers.append(None)
    server.say(503, problem(503, "unavailable"), Retry_After="0")
    server.say(409, problem(409, "idempotency_in_progress"), Retry_After="0")
    server.say(200, REDEEMED)

    result = run("redeem", "CODE", "--json", "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert result.returncode == Exit.OK
    assert json.loads(result.stdout) == {**REDEEMED, "redeemed_before": False}
    assert len({sent_request.headers["idempotency-key"] for sent_request in server.seen}) == 1
    assert len(server.seen) == 4


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        (400, "invalid_request", Exit.FAILED),
        (401, "invalid_token", Exit.REFUSED),
        (403, "insufficient_scope", Exit.REFUSED),
        (404, "code_not_found", Exit.NOT_FOUND),
        (409, "code_already_redeemed", Exit.CONFLICT),
        (410, "code_expired", Exit.CONFLICT),
        (422, "checksum_mismatch", Exit.CHECKSUM),
        (507, "insufficient_storage", Exit.STORAGE_FULL),
        (500, "internal_error", Exit.FAILED),
    ],
)
def test_a_refusal_prints_the_problem_the_reason_and_the_remedy(
    run: Run, scripted: Make, status: int, code: str, exit_code: Exit
) -> None:
    server = scripted()
    server.say(status, problem(status, code))

    result = run("--server", server.url, "redeem", "CODE", COUNTERSIGN_TOKEN="secret-token")

    assert result.returncode == exit_code
    assert result.stdout == ""
    assert "Error: cannot redeem the code" in result.stderr
    assert f"Why:   because ({status} {code})" in result.stderr
    assert "Next:" in result.stderr
    assert "secret-token" not in result.stderr


def test_with_json_a_failure_is_one_object_on_stdout(run: Run, scripted: Make) -> None:
    server = scripted()
    server.say(404, problem(404, "code_not_found"))

    result = run("redeem", "CODE", "--json", "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert json.loads(result.stdout) == {
        "error": {
            "what": "cannot redeem the code",
            "why": "because (404 code_not_found)",
            "next": "do that",
            "code": "code_not_found",
            "exit_code": 3,
        }
    }


def test_a_server_that_is_busy_for_ever_ends_as_rate_limited(run: Run, scripted: Make) -> None:
    server = scripted()
    for _ in range(4):
        server.say(429, problem(429, "rate_limit_exceeded"), Retry_After="0")

    result = run("redeem", "CODE", "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert result.returncode == Exit.RATE_LIMITED


@pytest.mark.parametrize(("retry_after", "wait_text"), [("61", "61 seconds"), ("3600", "60 minutes")])
def test_the_wait_is_reported_without_the_name_of_its_header(
    run: Run, scripted: Make, retry_after: str, wait_text: str
) -> None:
    server = scripted()
    server.say(503, problem(503, "unavailable", resolution=Unavailable.resolution), Retry_After=retry_after)

    result = run("redeem", "CODE", "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert f"Next:  Try again in {wait_text}." in result.stderr
    assert "Retry-After" not in result.stderr


def test_no_hint_names_a_header_on_the_command_line() -> None:
    refusals = [refusal for refusal in refusal_types() if "Retry-After" in refusal.resolution]

    hints = [output.hint(refusal.code, 5) for refusal in refusals]

    assert len(hints) > 3
    assert set(hints) == {"Try again in 5 seconds."}


def test_a_problem_whose_resolution_names_a_call_of_the_api_has_a_hint_of_its_own() -> None:
    refusals = [
        refusal for refusal in refusal_types() if re.search(CALL, refusal.resolution) and refusal.code != NotFound.code
    ]

    hints = [output.hint(refusal.code, 0) for refusal in refusals]

    assert len(hints) > 3
    assert all(hints)
    assert not [text for text in output.HINTS.values() if re.search(CALL, text) or text.count("`") % 2]


def test_every_hint_belongs_to_an_existing_problem_code() -> None:
    assert {*output.HINTS, *output.WAITING} <= {refusal.code for refusal in refusal_types()}


def test_the_error_for_a_missing_product_names_the_command_that_lists_products(
    run: Run, scripted: Make, tmp_path: Path
) -> None:
    server = scripted()
    server.say(404, problem(404, NotFound.code, "no such product", ProductNotFound.resolution))

    result = run("pull", "toolsmith/chess", str(tmp_path), "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert result.returncode == Exit.NOT_FOUND
    assert "Next:  List the products with `countersign api GET products`" in result.stderr


def test_the_text_of_a_server_is_printed_unchanged(run: Run, scripted: Make) -> None:
    server = scripted()
    server.say(409, problem(409, "some_code", resolution="Wait for the time in Retry-After and send the request again"))

    result = run("redeem", "CODE", "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert "Next:  Wait for the time in Retry-After and send the request again" in result.stderr


def refusal_types(of: type[Refused] = Refused) -> list[type[Refused]]:
    """Return all problem types of both services."""
    assert distribution.ROUTES
    assert records.SCHEMA
    return [of, *(refusal for subclass in of.__subclasses__() for refusal in refusal_types(subclass))]


def test_no_server_at_all_is_unreachable(run: Run) -> None:
    result = run("library", "--server", "http://127.0.0.1:1", COUNTERSIGN_TOKEN="t")

    assert result.returncode == Exit.UNREACHABLE
    assert "http://127.0.0.1:1" in result.stderr


def test_a_refusal_cannot_move_the_cursor(run: Run, scripted: Make) -> None:
    server = scripted()
    server.say(404, problem(404, "code_not_found", "\x1b[2J\x9b31mgone\x07"))

    result = run("redeem", "CODE", "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert "gone" in result.stderr
    assert not any(character < " " and character != "\n" for character in result.stdout + result.stderr)
    assert "\x9b" not in result.stderr


def test_an_answer_that_is_no_json_is_explained(run: Run, scripted: Make) -> None:
    server = scripted()
    server.answers.append((200, {}, b"<html>"))

    result = run("library", "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert result.returncode == Exit.FAILED
    assert "not understood" in result.stderr


def test_the_client_of_the_environment_is_exchanged_for_a_token(run: Run, scripted: Make) -> None:
    server = scripted()
    server.say(200, {"access_token": "made", "token_type": "Bearer"})
    server.say(200, [])

    result = run("library", "--server", server.url, COUNTERSIGN_CLIENT_ID="me", COUNTERSIGN_CLIENT_SECRET="psst")

    assert result.returncode == Exit.OK
    exchange, library = server.seen
    assert (exchange.path, exchange.body) == ("/api/v1/auth/token", b"grant_type=client_credentials")
    assert exchange.headers["authorization"] == "Basic bWU6cHNzdA=="
    assert library.headers["authorization"] == "Bearer made"
    assert "psst" not in result.stdout + result.stderr


def test_the_library_is_read_page_by_page_from_the_server_that_was_named(run: Run, scripted: Make) -> None:
    server = scripted()
    server.say(200, [PRODUCT], Link='<https://public.example/api/v1/library?limit=100&cursor=abc>; rel="next"')
    server.say(200, [{**PRODUCT, "slug": "other"}])
    product_result = {"status": 200, "body": {**PRODUCT, "org": "toolsmith"}}
    server.say(200, {"results": [product_result, {"status": 404, "body": problem(404, NotFound.code)}]})

    result = run("library", "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert result.stdout == "toolsmith/thing\tThing\ttool\tlinux\nother\tThing\ttool\tlinux\n", result.stderr
    assert [request.path for request in server.seen][1:] == ["/api/v1/library?limit=100&cursor=abc", "/api/v1/batch"]


def test_a_token_does_not_follow_a_redirect_to_another_server(run: Run, scripted: Make) -> None:
    server, other_server = scripted(), scripted()
    content = b"bytes"
    digest = "277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9"
    artifact = {"id": "a", "filename": "thing.bin", "size": len(content), "sha256": digest}
    server.say(200, PRODUCT)
    server.say(200, [{"version": "1", "channel": "stable", "artifacts": [artifact]}])
    server.answers.append((307, {"Location": f"{other_server.url}/bucket/blob?signed"}, b""))
    other_server.answers.append((200, {}, content))

    result = run("download", "toolsmith/thing", "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert result.returncode == Exit.OK, result.stderr
    assert server.seen[2].headers["authorization"] == "Bearer t"
    assert other_server.seen[0].path == "/bucket/blob?signed"
    assert "authorization" not in other_server.seen[0].headers


def test_invalid_input_is_reported_with_its_position(run: Run, scripted: Make) -> None:
    server = scripted()
    problem_body = problem(
        400, "invalid_request", "it is wrong", "Correct what `errors` names and send the request again."
    )
    faults = [{"pointer": "/count", "detail": "too many"}, {"parameter": "org", "detail": "?"}]
    server.say(400, {**problem_body, "errors": faults})

    result = run("redeem", "CODE", "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert "Why:   it is wrong; /count: too many; org: ? (400 invalid_request)" in result.stderr
    assert "Next:  Correct what the message names, then run the command again." in result.stderr


def test_a_remedy_names_the_command_and_not_the_call_of_the_api(run: Run, scripted: Make) -> None:
    server = scripted()
    server.say(403, problem(403, NotEntitled.code, "not owned", NotEntitled.resolution))

    result = run("pull", "toolsmith/thing", "there", "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert "with `countersign redeem CODE`" in result.stderr
    assert "/api/v1" not in result.stderr


def test_a_command_that_no_sign_in_allows_names_the_alternatives(run: Run, demo_store: Running) -> None:
    token = issue_token(run, demo_store, "publisher@example.com", "read:products")

    codes = run("codes", "issue", "toolsmith/awl", "--kind", "license", "--server", demo_store.url, **token)
    other_result = run("api", "POST", "products", "--server", demo_store.url, **token)

    assert codes.returncode == other_result.returncode == Exit.REFUSED
    for alternative in ("/publisher?tab=codes", "COUNTERSIGN_CLIENT_ID", "token issue EMAIL --scope admin:org"):
        assert alternative in codes.stderr
    assert "gives no token with the scope admin:org" in codes.stderr
    assert "gives no token" not in other_result.stderr
    assert "--scope write:products" in other_result.stderr
    assert "countersign login --publish" in other_result.stderr


def issue_token(run: Run, store: Running, email: str, scope: str) -> dict[str, str]:
    """Return the environment variable whose token lets commands act as this person."""
    result = run("token", "issue", email, "--scope", scope, "--data", store.data)
    assert result.returncode == Exit.OK, result.stderr
    return {"COUNTERSIGN_TOKEN": result.stdout.strip()}


@pytest.mark.parametrize("set_half", ["ID", "SECRET"])
def test_half_of_an_oauth_client_is_an_error_that_names_the_other_half(run: Run, scripted: Make, set_half: str) -> None:
    missing = "SECRET" if set_half == "ID" else "ID"

    result = run("library", "--server", scripted().url, **{f"COUNTERSIGN_CLIENT_{set_half}": "some"})

    assert result.returncode == Exit.USAGE
    assert f"COUNTERSIGN_CLIENT_{missing} is missing" in result.stderr


def test_an_answer_without_a_reason_is_reported_once_and_names_both_ways_to_the_address(
    run: Run, scripted: Make
) -> None:
    server = scripted()
    server.say(404, "what?")

    result = run("redeem", "CODE", "--server", server.url, COUNTERSIGN_TOKEN="t")

    assert f"Why:   {server.url} answered 404 without a reason\n" in result.stderr
    assert "--server or COUNTERSIGN_SERVER" in result.stderr


def test_a_customer_who_pushes_or_publishes_learns_how_to_act_for_the_organisation(
    run: Run, demo_store: Running, tmp_path: Path
) -> None:
    customer = {"COUNTERSIGN_TOKEN": demo_store.token("player@example.com"), "COUNTERSIGN_SERVER": demo_store.url}
    (tmp_path / "a").write_bytes(b"a")

    pushed_result = run("push", "a", "northwind-games/awl", "--version", "900", **customer)
    published_result = run("publish", "northwind-games/awl", "900", **customer)

    assert pushed_result.returncode == published_result.returncode == Exit.REFUSED
    for result in (pushed_result, published_result):
        assert "`countersign login --publish`" in result.stderr
        assert "COUNTERSIGN_CLIENT_ID and COUNTERSIGN_CLIENT_SECRET" in result.stderr


def test_the_error_for_a_missing_release_names_the_command_that_lists_releases(run: Run, demo_store: Running) -> None:
    publisher = {"COUNTERSIGN_TOKEN": demo_store.token("publisher@example.com"), "COUNTERSIGN_SERVER": demo_store.url}

    result = run("publish", "northwind-games/harbour-of-small-lights", "900.900", **publisher)

    assert result.returncode == Exit.NOT_FOUND
    assert "`countersign api GET products/harbour-of-small-lights/releases`" in result.stderr
