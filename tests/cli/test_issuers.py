"""`countersign issuers` manages the issuers that the store trusts."""

import json
from pathlib import Path

from countersign.cli.output import Exit
from tests.cli.conftest import Run

ISSUER = "https://id.example"


def test_an_issuer_is_added_listed_and_removed(run: Run, tmp_path: Path) -> None:
    data = ("--data", tmp_path / "data")
    keys = ("--jwks-uri", f"{ISSUER}/jwks.json", "--name", "Example ID")
    none_result = run("issuers", "list", *data)
    early_result = run("issuers", "add", ISSUER, *keys, *data)
    untouched = not (tmp_path / "data").exists()
    assert run("org", "create", "acme", "--name", "Acme", *data).returncode == Exit.OK
    added_result = run(
        "issuers", "add", ISSUER, *keys, "--algorithm", "EdDSA", "--client-id", "a", "--domain", "x.org", *data
    )
    second_result = run("issuers", "add", ISSUER, *keys, *data)
    listed_result = run("issuers", "list", "--json", *data)
    removed_result = run("issuers", "remove", ISSUER, *data)
    gone_result = run("issuers", "remove", ISSUER, *data)

    assert (none_result.returncode, early_result.returncode) == (Exit.NOT_FOUND, Exit.NOT_FOUND)
    assert "has no database" in none_result.stderr
    assert untouched
    assert added_result.stdout == f"{ISSUER} is trusted as Example ID.\n", added_result.stderr
    assert (second_result.returncode, gone_result.returncode) == (Exit.CONFLICT, Exit.NOT_FOUND)
    assert "issuers remove" in second_result.stderr
    assert json.loads(listed_result.stdout)["issuers"] == [
        {
            "issuer": ISSUER,
            "name": "Example ID",
            "jwks_uri": f"{ISSUER}/jwks.json",
            "algorithms": ["EdDSA"],
            "client_ids": ["a"],
            "domains": ["x.org"],
        }
    ]
    assert removed_result.stdout == f"{ISSUER} is no longer trusted; agents ended: 0.\n"


def test_an_untrustworthy_issuer_is_refused_with_the_remedy(run: Run, tmp_path: Path) -> None:
    assert run("org", "create", "acme", "--name", "Acme", "--data", tmp_path / "data").returncode == Exit.OK
    data = ("--data", tmp_path / "data", "--name", "Example ID")
    http_result = run("issuers", "add", ISSUER, "--jwks-uri", "http://id.example/jwks.json", *data)
    mac_result = run("issuers", "add", ISSUER, "--jwks-uri", f"{ISSUER}/jwks.json", "--algorithm", "HS256", *data)

    assert (http_result.returncode, mac_result.returncode) == (Exit.FAILED, Exit.USAGE)
    assert "https://" in http_result.stderr
    assert "HS256" in mac_result.stderr
