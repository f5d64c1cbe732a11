"""300 persons redeem a promotion code with 100 uses through 64 clients, while the server is killed again and again.
Without --full, there are 100 persons, 33 uses and 32 clients, and fewer kills."""

import asyncio
import json
import random
import statistics
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from countersign.store.context import Store
from tests.faults import shop, wire
from tests.faults.lives import RestartableService
from tests.faults.nemesis import StoreKiller
from tests.faults.wire import WireResponse
from tests.figures import Figures

KILLS_A_ROUND, STINTS_FULL, KILLS_A_STINT = 5, 10, 50
"""The most kills of a round, the stints with --full, and the kills of each of these stints: 500 kills on each database.
Each stint is a test of its own, so that an interrupted run can continue with the next stint."""


class RoundSize(NamedTuple):
    """The number of persons who want a code, of its uses, and of clients at a time. Shortly before each kill, up to
    `first_tries_a_life` persons may try for the first time."""

    persons: int
    uses: int
    clients: int
    first_tries_a_life: int


SAMPLE, FULL = RoundSize(100, 33, 32, 25), RoundSize(300, 100, 64, 75)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run one stint, or all stints with --full."""
    if "stint" in metafunc.fixturenames:
        metafunc.parametrize("stint", range(STINTS_FULL if metafunc.config.getoption("--full") else 1))


@dataclass
class RedeemRound:
    """One code, the persons who want it, and every answer to each."""

    code: str
    product_id: str
    token_by_person: dict[str, str]
    idempotency_key_by_person: dict[str, str] = field(default_factory=dict)
    answers: dict[str, WireResponse] = field(default_factory=dict)
    applied_though_cut_count: int = 0
    replays: int = 0
    cut_count: int = 0

    def persons_answered(self, status: int) -> set[str]:
        """Return the persons who got an answer with this status."""
        return {person for person, answer in self.answers.items() if answer.status == status}

    def record_answer(self, person: str, answer: WireResponse) -> None:
        """Record an answer; a second answer to the same person must equal the first, byte for byte."""
        is_replay = "idempotency-replayed" in answer.headers
        first_answer = self.answers.setdefault(person, answer)
        if first_answer is answer:
            self.applied_though_cut_count += is_replay
        else:
            self.replays += 1
            assert is_replay
            assert (answer.status, answer.body) == (first_answer.status, first_answer.body)


async def redeem(service: RestartableService, redeem_round: RedeemRound, person: str) -> None:
    """Redeem the code for the person, and repeat with the same key until there is an answer."""
    key = redeem_round.idempotency_key_by_person.setdefault(person, str(uuid.uuid4()))
    headers = {"Idempotency-Key": key}
    body = json.dumps({"code": redeem_round.code}).encode()
    while True:
        try:
            answer = await wire.call(
                service.port,
                "POST",
                "/api/v1/redeem",
                token=redeem_round.token_by_person[person],
                headers=headers,
                body=body,
            )
        except ConnectionRefusedError:
            await asyncio.sleep(0.01)
            continue
        except (OSError, EOFError):
            redeem_round.cut_count += 1
            continue
        if answer.status == 503 or b"idempotency_in_progress" in answer.body:
            await asyncio.sleep(0.01)
            continue
        assert answer.status == 200 or b"code_already_redeemed" in answer.body, answer
        redeem_round.record_answer(person, answer)
        return


async def play(nemesis: StoreKiller, redeem_round: RedeemRound, kills: int, size: RoundSize) -> None:
    """Let the clients work until all persons have an answer and all kills are done. Before each kill, some persons may
    try for the first time."""
    waiting_persons = list(redeem_round.token_by_person)
    nemesis.rng.shuffle(waiting_persons)
    is_over = False
    first_tries_left = 0

    def allow_first_tries() -> None:
        nonlocal first_tries_left
        first_tries_left = size.first_tries_a_life

    async def client(number: int) -> None:
        nonlocal first_tries_left
        rng = random.Random(number)
        while not is_over:
            if waiting_persons and first_tries_left:
                first_tries_left -= 1
                await redeem(nemesis.lives, redeem_round, waiting_persons.pop())
            elif redeem_round.answers and number % 8 == 0:
                await redeem(nemesis.lives, redeem_round, rng.choice(list(redeem_round.answers)))
            else:
                await asyncio.sleep(0.005)

    async with asyncio.TaskGroup() as group:
        for number in range(size.clients):
            group.create_task(client(number))
        strike_count = 0
        while waiting_persons or strike_count < kills:
            await nemesis.strike(allow_first_tries)
            strike_count += 1
        is_over = True


async def check(store: Store, service: RestartableService, redeem_round: RedeemRound, size: RoundSize) -> None:
    """Check that the code was redeemed exactly as often as it has uses, that no redemption is lost or doubled, and that
    answers do not change."""
    for person in redeem_round.token_by_person:
        await redeem(service, redeem_round, person)
    granted_persons, refused_persons = redeem_round.persons_answered(200), redeem_round.persons_answered(409)
    assert (len(granted_persons), len(refused_persons)) == (size.uses, size.persons - size.uses)
    uses, redeemed, entitled = await shop.code_state(store, redeem_round.code, redeem_round.product_id)
    assert uses == size.uses
    assert not [person for person, times in Counter([*redeemed]).items() if times > 1]
    assert not [person for person, times in Counter([*entitled]).items() if times > 1]
    assert set(redeemed) == set(entitled) == granted_persons


async def test_no_use_of_a_code_is_lost_or_doubled_when_the_server_is_killed(
    lives: RestartableService, database_url: str, stint: int, is_full: bool, figures: Figures
) -> None:
    kill_count, size = (KILLS_A_STINT, FULL) if is_full else (KILLS_A_ROUND, SAMPLE)
    rounds: list[RedeemRound] = []
    async with shop.open_served_store(lives, database_url) as store:
        org_id = await shop.organisation(store)
        token_by_person = await shop.persons(store, size.persons)
        nemesis = StoreKiller(lives, seed=stint)
        await nemesis.restart()
        while nemesis.kills < kill_count:
            number = len(rounds)
            product_id = await shop.product(store, org_id, f"game-{number}")
            redeem_round = RedeemRound(f"PROMO-{number}", product_id, token_by_person)
            await shop.promo(store, org_id, product_id, redeem_round.code, size.uses)
            await play(nemesis, redeem_round, min(KILLS_A_ROUND, kill_count - nemesis.kills), size)
            await check(store, lives, redeem_round, size)
            rounds.append(redeem_round)

    figures |= {
        "kills": nemesis.kills,
        "rounds": len(rounds),
        "acknowledged": size.uses * len(rounds),
        "lost": 0,
        "doubled": 0,
        "cut_before_their_answer": sum(round_.cut_count for round_ in rounds),
        "kept_though_cut": sum(round_.applied_though_cut_count for round_ in rounds),
        "replays_byte_identical": sum(round_.replays for round_ in rounds),
        "ready_again_p50_s": round(statistics.median(nemesis.restarts_s), 3),
        "ready_again_max_s": round(max(nemesis.restarts_s), 3),
    }
