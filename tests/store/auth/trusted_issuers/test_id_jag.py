"""Assertions of identity providers: which claims are trusted, and which are not."""

import pytest

from countersign.kernel import clock
from countersign.store.auth import id_jag
from countersign.store.context import Store
from tests.peers.identity_provider import NAME, IdentityProvider
from tests.store.conftest import ROOT_URL


@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "RS256", "PS256", "EdDSA"])
async def test_an_assertion_contains_issuer_subject_client_and_expiry(
    store: Store, provider: IdentityProvider, algorithm: str
) -> None:
    await provider.trust(store)
    claims = provider.claims(ROOT_URL, scope="read:library read:products", resource=f"{ROOT_URL}/api/v1")

    verified_assertion = await id_jag.verify(store, provider.signed(claims, algorithm=algorithm))

    assert verified_assertion == id_jag.IdentityAssertion(
        issuer=provider.issuer,
        issuer_name=NAME,
        subject="user-1",
        client_id="agent-1",
        jti=claims["jti"],
        expires_at=clock.Instant(claims["exp"] * clock.SECOND),
        email="ann@example.com",
        scope=frozenset({"read:library", "read:products"}),
        auth_time_s=claims["auth_time"],
        resource=(f"{ROOT_URL}/api/v1",),
    )
    assert provider.paths == ["/jwks.json"]


async def test_an_assertion_is_used_once(store: Store, provider: IdentityProvider) -> None:
    await provider.trust(store)
    verified_assertion = await id_jag.verify(store, provider.mint(ROOT_URL))

    async with store.database.transaction() as transaction:
        await id_jag.use_once(transaction, verified_assertion)

    with pytest.raises(id_jag.ReplayDetected):
        async with store.database.transaction() as transaction:
            await id_jag.use_once(transaction, verified_assertion)
