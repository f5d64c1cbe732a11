"""Trusted issuers: the options that the operator may set, and those that are refused."""

import pytest

from countersign.kernel.errors import InvalidRequest
from countersign.settings import Settings
from countersign.store import app as distribution
from countersign.store.auth import trusted_issuers
from countersign.store.context import Store
from tests.store.conftest import ROOT_URL, with_settings

ISSUER = "https://id.example"
USUAL = {"name": "Example ID", "jwks_uri": f"{ISSUER}/jwks.json"}


async def add(store: Store, issuer: str = ISSUER, **members: object) -> trusted_issuers.Issuer:
    """Trust an issuer."""
    async with store.database.transaction() as transaction:
        return await trusted_issuers.add(transaction, store, issuer, **{**USUAL, **members})


async def test_an_issuer_is_stored_as_entered(store: Store) -> None:
    added_issuer = await add(store, algorithms=["EdDSA"], client_ids=["a", "b"], domains=["Example.com "])

    assert added_issuer == await trusted_issuers.issuer(store.database, ISSUER)
    assert (added_issuer.algorithms, added_issuer.client_ids, added_issuer.domains) == (
        {"EdDSA"},
        {"a", "b"},
        {"example.com"},
    )
    assert await trusted_issuers.issuers(store.database) == [added_issuer]


async def test_without_declared_algorithms_the_two_usual_algorithms_are_allowed(store: Store) -> None:
    assert (await add(store)).algorithms == {"ES256", "RS256"}


async def test_adding_an_existing_issuer_changes_nothing(store: Store) -> None:
    added_issuer = await add(store)

    with pytest.raises(trusted_issuers.IssuerExists):
        await add(store, name="Another")

    assert await trusted_issuers.issuer(store.database, ISSUER) == added_issuer


async def test_an_issuer_is_removed_once(store: Store) -> None:
    await add(store)
    async with store.database.transaction() as transaction:
        await trusted_issuers.remove(transaction, ISSUER)

    with pytest.raises(trusted_issuers.IssuerNotFound):
        async with store.database.transaction() as transaction:
            await trusted_issuers.remove(transaction, ISSUER)
    assert await trusted_issuers.issuers(store.database) == []


async def test_t12_an_issuer_is_found_only_by_its_exact_name(store: Store) -> None:
    await add(store)

    for similar_issuer in (f"{ISSUER}/", ISSUER.upper(), ISSUER[:-1], f"{ISSUER}%", "", "%", "_" * len(ISSUER)):
        assert await trusted_issuers.issuer(store.database, similar_issuer) is None


SENSELESS: list[dict[str, object]] = [
    *({"name": name} for name in (" ", "x" * 81, "a\nb", "a\u202eb")),
    *({"jwks_uri": address} for address in ("ftp://id.example", "")),
    *({"algorithms": names} for names in (["none"], ["HS256"], ["ES256", "rs256"])),
    *({"domains": [domain]} for domain in ("a@example.com", "", ".", "com", "exa mple.com", "exámple.com")),
    *({"issuer": f"{ISSUER}{suffix}"} for suffix in ("?a", "#a", "/" + "a" * 255)),
    *({"issuer": name} for name in ("id.example", ROOT_URL, f"{ROOT_URL}/")),
]


async def test_invalid_issuer_data_is_refused(store: Store) -> None:
    for members in SENSELESS:
        with pytest.raises(InvalidRequest):
            await add(store, **members)

    assert await trusted_issuers.issuers(store.database) == []


async def test_an_issuer_with_plain_http_needs_a_setting(store: Store, settings: Settings) -> None:
    careful = with_settings(settings, private_issuers=False)
    async with distribution.open_store(careful, ROOT_URL, is_loopback=True) as careful_store:
        for members in ({"issuer": "http://id.example"}, {"jwks_uri": "http://id.example/jwks.json"}):
            with pytest.raises(InvalidRequest):
                await add(careful_store, **members)

    assert await add(store, "http://id.example", jwks_uri="http://127.0.0.1:1/jwks.json")
