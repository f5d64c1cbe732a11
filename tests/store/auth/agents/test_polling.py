"""The limit on the frequency of polls (attack T31)."""

import pytest

from countersign.kernel import clock
from tests.store.auth.agents.people import RegisteredAgent, Visitor
from tests.store.world import World


async def test_t31_polls_that_come_too_fast_are_slowed_down(world: World) -> None:
    agent = await RegisteredAgent.by_email(world, "pat@example.com")
    now = clock.now()

    async def poll_after(seconds: int) -> tuple[int, str | None]:
        with clock.fixed(clock.later(now, seconds=seconds)):
            answer = await agent.poll()
            return answer.status_code, answer.headers.get("retry-after")

    assert await poll_after(1) == (200, None)
    assert await poll_after(5) == (429, "10")
    assert await poll_after(14) == (429, "15")
    assert await poll_after(29) == (200, None)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_the_first_poll_may_come_at_once(world: World, method: str) -> None:
    agent = await RegisteredAgent.by_email(world, "pat@example.com")

    headers = {"Authorization": f"Bearer {agent.claim_token}"}
    response = await world.http.request(method, "/api/v1/auth/me", headers=headers)

    assert response.json()["status"] == "pending"


@pytest.mark.parametrize("decision", ["allow", "decline"])
async def test_a_decided_claim_is_returned_even_to_fast_polling(world: World, decision: str) -> None:
    pat = await Visitor.signed_in(world, "pat@example.com")
    agent = await RegisteredAgent.by_email(world, "pat@example.com")
    with clock.fixed(clock.now()):
        assert (await agent.poll()).status_code == 200
        await pat.decide(agent.link, decision, user_code=agent.code)
        poll_answers = [await agent.poll() for _ in range(3)]

    assert {answer.status_code for answer in poll_answers} == {200 if decision == "allow" else 403}
