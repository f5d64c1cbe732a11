"""`login` keeps a token in a private file after the server accepted it, and no command prints it."""

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run, ScriptedServer
from tests.servers.countersign import Running

Make = Callable[[], ScriptedServer]
ME = {"sub": "p1", "email": "me@example.com", "scope": "read:library", "expires_at": "2027", "orgs": ["toolsmith"]}


def test_a_token_from_stdin_is_saved_only_for_its_server(run: Run, scripted: Make, home: dict[str, str]) -> None:
    server, other_server = scripted(), scripted()
    server.say(200, ME)
    server.say(200, [])
    other_server.say(401, {"code": "invalid_token", "detail": "this needs a token"})

    signed_in = run("login", "--with-token", "--server", server.url, stdin="the-token\n")
    listed_result = run("library", "--server", server.url)
    foreign_result = run("library", "--server", other_server.url)

    credentials_file = Path(home["XDG_CONFIG_HOME"]) / "countersign" / "credentials.json"
    assert signed_in.returncode == listed_result.returncode == Exit.OK
    assert "me@example.com" in signed_in.stdout
    assert "the-token" not in signed_in.stdout + signed_in.stderr
    assert stat.S_IMODE(credentials_file.stat().st_mode) == 0o600
    assert server.seen[1].headers["authorization"] == "Bearer the-token"
    assert foreign_result.returncode == Exit.REFUSED
    assert "authorization" not in other_server.seen[0].headers


def test_a_token_the_server_refuses_is_not_kept(run: Run, scripted: Make, home: dict[str, str]) -> None:
    server = scripted()
    server.say(401, {"code": "invalid_token", "detail": "expired"})

    result = run("login", "--with-token", "--server", server.url, stdin="old")

    assert result.returncode == Exit.REFUSED
    assert not (Path(home["XDG_CONFIG_HOME"]) / "countersign").exists()


def test_a_credentials_file_that_other_users_can_read_is_refused(run: Run, home: dict[str, str]) -> None:
    credentials_file = Path(home["XDG_CONFIG_HOME"]) / "countersign" / "credentials.json"
    credentials_file.parent.mkdir(parents=True)
    credentials_file.write_text('{"tokens": {}}')
    credentials_file.chmod(0o644)

    result = run("whoami")

    assert result.returncode == Exit.REFUSED
    assert f"chmod 600 {credentials_file}" in result.stderr


def test_whoami_without_a_token_names_the_login_command(run: Run) -> None:
    result = run("whoami")

    assert result.returncode == Exit.REFUSED
    assert "countersign login" in result.stderr


def test_a_token_on_the_command_line_is_a_usage_error(run: Run) -> None:
    result = run("login", "--with-token", "the-token")

    assert result.returncode == Exit.USAGE


def test_no_token_on_stdin_is_a_usage_error(run: Run) -> None:
    result = run("login", "--with-token", stdin="\n")

    assert result.returncode == Exit.USAGE


def test_a_token_in_the_environment_that_overrides_the_saved_token_is_reported(run: Run, scripted: Make) -> None:
    server = scripted()
    server.say(200, ME)
    server.say(401, {"code": "invalid_token", "detail": "the token is expired"})

    signed_in = run("login", "--with-token", "--server", server.url, stdin="new", COUNTERSIGN_TOKEN="old")
    refused_result = run("whoami", "--server", server.url, COUNTERSIGN_TOKEN="old")

    assert "COUNTERSIGN_TOKEN is set and takes precedence" in signed_in.stderr
    assert "unset it" in refused_result.stderr


READING = "read:products read:releases read:library"
ASKED = {
    "claim_token": "clm_1",
    "claim": {"user_code": "WDJB-MJHT", "verification_uri": "http://x/auth/claim", "expires_in": 600, "interval": 0},
}


@pytest.mark.parametrize(
    ("options", "scope"), [((), READING), (("--publish",), f"{READING} write:products write:releases")]
)
def test_a_sign_in_requests_the_scopes_of_every_account_and_more_on_request(
    run: Run, scripted: Make, options: tuple[str, ...], scope: str
) -> None:
    server = scripted()
    server.say(200, ASKED)
    server.say(200, {"status": "claimed", "identity_assertion": "a.b.c"})
    server.say(200, {"access_token": "the-token"})
    server.say(200, ME)

    result = run("login", "--email", "me@example.com", *options, "--server", server.url)

    assert result.returncode == Exit.OK, result.stderr
    assert json.loads(server.seen[0].body)["scope"] == scope


def test_a_person_without_publishing_rights_is_shown_how_to_sign_in(
    run: Run, scripted: Make, home: dict[str, str]
) -> None:
    server = scripted()
    server.say(200, ASKED)
    server.say(400, {"code": "invalid_scope", "detail": "your person's account lacks write:products write:releases"})

    result = run("login", "--email", "me@example.com", "--publish", "--server", server.url)

    assert result.returncode == Exit.REFUSED
    for expected_text in ("this account may not publish", "without --publish", "make this account a publisher"):
        assert expected_text in result.stderr
    assert not (Path(home["XDG_CONFIG_HOME"]) / "countersign").exists()


def test_a_token_from_stdin_and_scopes_to_ask_for_exclude_each_other(run: Run) -> None:
    result = run("login", "--with-token", "--publish", stdin="t")

    assert result.returncode == Exit.USAGE
    assert "the token already has its scopes" in result.stderr


def test_a_server_that_asks_for_an_hour_is_not_waited_for(run: Run, scripted: Make) -> None:
    server = scripted()
    server.say(429, {"code": "rate_limit_exceeded", "detail": "the limit is used up"}, **{"Retry-After": "3411"})

    result = run("login", "--email", "me@example.com", "--server", server.url)

    assert result.returncode != Exit.OK
    assert "Try again in 57 minutes." in result.stderr
    assert len(server.seen) == 1


def sign_in(run: Run, server: ScriptedServer) -> None:
    """Sign in to the server, and require that it received one request."""
    server.say(200, ME)
    assert run("login", "--with-token", "--server", server.url, stdin="the-token").returncode == Exit.OK


def test_a_logout_removes_the_login_of_this_server_and_has_the_server_end_its_token(
    run: Run, scripted: Make, home: dict[str, str]
) -> None:
    server, other_server = scripted(), scripted()
    sign_in(run, server)
    sign_in(run, other_server)
    server.say(200, {})

    result = run("logout", "--server", server.url)
    second_result = run("logout", "--server", server.url, "--json")

    credentials_file = Path(home["XDG_CONFIG_HOME"]) / "countersign" / "credentials.json"
    assert result.returncode == second_result.returncode == Exit.OK, result.stderr
    assert list(json.loads(credentials_file.read_text())["tokens"]) == [other_server.url]
    assert stat.S_IMODE(credentials_file.stat().st_mode) == 0o600
    assert (server.seen[1].method, server.seen[1].path) == ("POST", "/auth/revoke")
    assert server.seen[1].body == b"token=the-token"
    assert "the-token" not in result.stdout + result.stderr
    assert json.loads(second_result.stdout) == {"server": server.url, "removed": False}


def test_a_logout_without_the_server_still_removes_the_login(run: Run, scripted: Make) -> None:
    server = scripted()
    sign_in(run, server)
    server.answers.append(None)

    result = run("logout", "--server", server.url)

    assert result.returncode == Exit.OK
    assert "The server did not revoke the token" in result.stderr
    assert "no saved login" in run("logout", "--server", server.url).stdout


def test_a_token_is_refused_by_the_store_after_its_logout(run: Run, demo_store: Running) -> None:
    token = demo_store.token("player@example.com")
    at = ("--server", demo_store.url)
    assert run("login", "--with-token", *at, stdin=token).returncode == Exit.OK

    result = run("logout", *at)

    assert result.returncode == Exit.OK, result.stderr
    assert "did not end" not in result.stderr
    assert run("whoami", *at, COUNTERSIGN_TOKEN=token).returncode == Exit.REFUSED


def test_a_refused_saved_login_names_the_commands_that_replace_and_remove_it(run: Run, scripted: Make) -> None:
    server = scripted()
    sign_in(run, server)
    server.say(401, {"code": "invalid_token", "detail": "the token is unknown"})

    result = run("library", "--server", server.url)

    assert result.returncode == Exit.REFUSED
    assert "`countersign login`" in result.stderr
    assert "`countersign logout`" in result.stderr
