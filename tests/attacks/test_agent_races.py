"""Races with the end of an agent: a request that read the agent before its end must not bind it afterwards."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from countersign.kernel.security import secrets
from countersign.settings import Settings
from countersign.store.auth import accounts, id_jag, queries
from countersign.store.auth.accounts import EmailLink
from countersign.store.auth.agents import register, registrations
from countersign.store.auth.agents.register import PendingClaim
from countersign.store.auth.agents.registrations import Applicant, AssertionOrigin
from tests.peers.identity_provider import IdentityProvider
from tests.store.conftest import ROOT_URL
from tests.store.world import World

FUTURE = "future@example.com"
READING = frozenset({"read:library"})


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A provider on this machine."""
    return replace(settings, private_issuers=True)


async def bound_while(
    world: World, provider: IdentityProvider, end: asyncio.Event, subject_read: asyncio.Event
) -> None:
    """Register a known subject a second time. The registration pauses between its read and its write."""
    store = world.store
    verified_assertion = await id_jag.verify(store, provider.mint(ROOT_URL, email=FUTURE, client_id="agent-2"))
    origin = AssertionOrigin(verified_assertion.issuer, verified_assertion.subject, verified_assertion.client_id)
    async with store.database.transaction() as transaction:
        person_id = await register._find_or_create_person(transaction, verified_assertion)
        subject_read.set()
        if store.database.dialect == "postgres":
            # When a lock blocks the other change, this registration finishes first, and the other change then ends the
            # agent.
            with suppress(TimeoutError):
                await asyncio.wait_for(end.wait(), 1)
        if person_id is not None:
            await register._register_for_person(store, transaction, origin, Applicant("agent", "", READING), person_id)


async def create_subject(world: World, provider: IdentityProvider) -> str:
    """Let the provider create a person with an agent, and return the id of the person."""
    await provider.trust(world.store)
    verified_assertion = await id_jag.verify(world.store, provider.mint(ROOT_URL, email=FUTURE))
    registered_agent = await register.register_or_await(
        world.store, verified_assertion, Applicant("agent", "", READING)
    )
    assert not isinstance(registered_agent, PendingClaim)
    assert registered_agent.person_id is not None
    return registered_agent.person_id


async def test_t34_a_registration_under_way_does_not_outlive_the_first_proof(
    world: World, provider: IdentityProvider
) -> None:
    person_id = await create_subject(world, provider)
    store, end, subject_read = world.store, asyncio.Event(), asyncio.Event()
    async with store.database.transaction() as transaction:
        await accounts.add_link(transaction, secrets.digest("proof"), EmailLink(FUTURE, "/"), 600)

    async def prove() -> None:
        await subject_read.wait()
        await accounts.redeem_link(store, "proof", "a hash", registrations.revoke_all_of)
        end.set()

    await asyncio.gather(bound_while(world, provider, end, subject_read), prove())

    assert await registrations.of_person(store, person_id) == []


async def test_t42_a_registration_under_way_does_not_outlive_its_subjects_revocation(
    world: World, provider: IdentityProvider
) -> None:
    person_id = await create_subject(world, provider)
    store, end, subject_read = world.store, asyncio.Event(), asyncio.Event()

    async def revoke() -> None:
        await subject_read.wait()
        async with store.database.transaction() as transaction:
            await registrations.revoke_subject(transaction, provider.issuer, "user-1")
        end.set()

    await asyncio.gather(bound_while(world, provider, end, subject_read), revoke())

    assert await registrations.of_person(store, person_id) == []
    assert await queries.person(store.database, person_id) is not None
