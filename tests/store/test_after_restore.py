"""Restoring an earlier backup does not restore revoked rights."""

import asyncio
from pathlib import Path

import pytest

from countersign.kernel.database.port import Reader
from countersign.kernel.security.jose import InvalidToken
from countersign.settings import Settings
from countersign.store import app, lifespan
from countersign.store.auth import people, tokens
from countersign.store.releases import uploads
from tests.servers.countersign import MASTER_KEY

ALIVE = """
SELECT (SELECT count(1) FROM session), (SELECT count(1) FROM authorization_code), (SELECT count(1) FROM delegation),
    (SELECT count(1) FROM registration WHERE status IN ('unclaimed', 'claimed')),
    (SELECT count(1) FROM consent WHERE scopes <> ''), (SELECT count(1) FROM email_proof WHERE used_at IS NULL),
    (SELECT count(1) FROM upload_part)
"""
GRANTED = """
INSERT INTO session (token_hash, person_id, created_at, expires_at) SELECT sealed, id, 1, 2 FROM person, service_key;
INSERT INTO delegation (issuer, subject, person_id, created_at) SELECT 'https://id.example', 'me', id, 1 FROM person;
INSERT INTO registration (id, kind, status, generation, person_id, scopes, agent, address, interval_s, created_at)
    SELECT 'reg_1', 'service_auth', 'claimed', 2, id, 'read:library', 'bot', '127.0.0.1', 5, 1 FROM person;
INSERT INTO registration (id, kind, status, generation, scopes, agent, address, interval_s, created_at)
    VALUES ('reg_2', 'anonymous', 'unclaimed', 1, '', 'bot', '127.0.0.1', 5, 1);
INSERT INTO consent (id, person_id, client_id, scopes, generation, created_at)
    SELECT 'cns_1', id, 'client', 'read:library', 1, 1 FROM person;
INSERT INTO authorization_code (code_hash, client_id, consent_id, redirect_uri, challenge, scopes, token_jti, auth_time,
        expires_at)
    SELECT sealed, 'client', 'cns_1', 'https://app.example', 'c', 'read:library', 'j', 1, 2 FROM service_key;
INSERT INTO email_proof (token_hash, email, return_to, created_at, expires_at)
    SELECT sealed, 'a@example.com', '/', 1, 2 FROM service_key;
INSERT INTO upload (id, token_hash, org_id, announced_by, purpose, subject_id, size, created_at, expires_at)
    SELECT 'u', sealed, 'o', 'person:p', 'artifact', 's', 5, 1, 2 FROM service_key;
INSERT INTO upload_part (upload_id, start_at, length, sha256) VALUES ('u', 0, 5, 'x');
"""


async def alive(reader: Reader) -> tuple[int, ...]:
    """Return the number of valid credentials of each kind."""
    row = await reader.fetch_one(ALIVE)
    assert row is not None
    return tuple(row)


def test_every_credential_has_ended_after_a_restore(database_url: str, tmp_path: Path) -> None:
    async def run() -> None:
        url = database_url if database_url.startswith("postgres") else ""
        settings = Settings(data=str(tmp_path), database_url=url, master_key=MASTER_KEY, reserve_mib=0)
        async with lifespan.open_store(settings, "http://127.0.0.1:8480", is_loopback=True) as store:
            async with store.database.transaction() as transaction:
                person = await people.add_person(transaction, "a@example.com", None)
                await transaction.run(GRANTED)
            token = tokens.issue(store, person.id, tokens.FIRST_PARTY, frozenset({"read:library"}))
            assert await alive(store.database) == (1, 1, 1, 2, 1, 1, 1)
            assert store.tokens.verify(token).sub == person.id

            async with store.database.transaction() as transaction:
                await uploads.forget_all_parts(transaction)
                await app.end_all_access(transaction, store.master)

            await store.versions()
            with pytest.raises(InvalidToken):
                store.tokens.verify(token)
            assert await alive(store.database) == (0,) * 7
            rows_after = await store.database.fetch("SELECT status, generation FROM registration ORDER BY id")
            assert rows_after == [("revoked", 3), ("revoked", 2)]
            assert await store.database.fetch("SELECT generation FROM consent") == [(2,)]

    asyncio.run(run())
