"""A promotion code with 100 uses, 300 persons, 64 clients, and a server that is killed again and again; a third of that
without --full."""

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

KILLS, STINTS_FULL, KILLS_A_STINT = 5, 10, 50
"""1,000 kills in all: 10 stints of 50 on each database, so that an interrupted run continues with the next stint."""


class RoundSize(NamedTuple):
    """The persons who want a code, its uses, the clients at a time, and how many first tries each life has."""

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
    owners: dict[str, str]
    keys: dict[str, str] = field(default_factory=dict)
    answers: dict[str, WireResponse] = field(default_factory=dict)
    kept_unheard: int = 0
    replays: int = 0
    cut: int = 0

    def owners_answered(self, status: int) -> set[str]:
        """Return the persons who got an answer with this status."""
        return {owner for owner, answer in self.answers.items() if answer.status == status}

    def hear(self, owner: str, answer: WireResponse) -> None:
        """Record an answer; a second answer to the same person must equal the first, byte for byte."""
        is_replay = "idempotency-replayed" in answer.headers
        first_answer = self.answers.setdefault(owner, answer)
        if first_answer is answer:
            self.kept_unheard += is_replay
        else:
            self.replays += 1
            assert is_replay
            assert (answer.status, answer.body) == (first_answer.status, first_answer.body)


async def redeem(lives: RestartableService, redeem_round: RedeemRound, owner: str) -> None:
    """Redeem the code for the person, and repeat with the same key until there is an answer."""
    key = redeem_round.keys.setdefault(owner, str(uuid.uuid4()))
    headers = {"Idempotency-Key": key}
    body = json.dumps({"code": redeem_round.code}).encode()
    while True:
        try:
            answer = await wire.call(
                lives.port, "POST", "/api/v1/redeem", token=redeem_round.owners[owner], headers=headers, body=body
            )
        except ConnectionRefusedError:
            await asyncio.sleep(0.01)
            continue
        except (OSError, EOFError):
            redeem_round.cut += 1
            continue
        if answer.status == 503 or b"idempotency_in_progress" in answer.body:
            await asyncio.sleep(0.01)
            continue
        assert answer.status == 200 or b"code_already_redeemed" in answer.body, answer
        redeem_round.hear(owner, answer)
        return


async def play(nemesis: StoreKiller, redeem_round: RedeemRound, kills: int, size: RoundSize) -> None:
    """Let the clients work, with several first tries in each life, until all are answered and all kills are done."""
    waiting_owners = list(redeem_round.owners)
    nemesis.rng.shuffle(waiting_owners)
    is_over = False
    finished_count = 0

    def crowd() -> None:
        nonlocal finished_count
        finished_count = size.first_tries_a_life

    async def client(number: int) -> None:
        nonlocal finished_count
        order = random.Random(number)
        while not is_over:
            if waiting_owners and finished_count:
                finished_count -= 1
                await redeem(nemesis.lives, redeem_round, waiting_owners.pop())
            elif redeem_round.answers and number % 8 == 0:
                await redeem(nemesis.lives, redeem_round, order.choice(list(redeem_round.answers)))
            else:
                await asyncio.sleep(0.005)

    async with asyncio.TaskGroup() as group:
        for number in range(size.clients):
            group.create_task(client(number))
        struck = 0
        while waiting_owners or struck < kills:
            await nemesis.strike(crowd)
            struck += 1
        is_over = True


async def check(store: Store, lives: RestartableService, redeem_round: RedeemRound, size: RoundSize) -> None:
    """Check that the code was redeemed exactly as often as it has uses, that no redemption is lost or doubled, and that
    answers do not change."""
    for owner in redeem_round.owners:
        await redeem(lives, redeem_round, owner)
    granted_owners, refused_owners = redeem_round.owners_answered(200), redeem_round.owners_answered(409)
    assert (len(granted_owners), len(refused_owners)) == (size.uses, size.persons - size.uses)
    uses, redeemed, entitled = await shop.code_state(store, redeem_round.code, redeem_round.product_id)
    assert uses == size.uses
    assert not [owner for owner, times in Counter([*redeemed]).items() if times > 1]
    assert not [owner for owner, times in Counter([*entitled]).items() if times > 1]
    assert set(redeemed) == set(entitled) == granted_owners


async def test_no_use_of_a_code_is_lost_or_doubled_when_the_server_is_killed(
    lives: RestartableService, database_url: str, stint: int, is_full: bool, figures: Figures
) -> None:
    kill_count, size = (KILLS_A_STINT, FULL) if is_full else (KILLS, SAMPLE)
    rounds: list[RedeemRound] = []
    async with shop.open_served_store(lives, database_url) as store:
        org_id = await shop.organisation(store)
        owners = await shop.persons(store, size.persons)
        nemesis = StoreKiller(lives, seed=stint)
        await nemesis.restart()
        while nemesis.kills < kill_count:
            number = len(rounds)
            product_id = await shop.product(store, org_id, f"game-{number}")
            redeem_round = RedeemRound(f"PROMO-{number}", product_id, owners)
            await shop.promo(store, org_id, product_id, redeem_round.code, size.uses)
            await play(nemesis, redeem_round, min(KILLS, kill_count - nemesis.kills), size)
            await check(store, lives, redeem_round, size)
            rounds.append(redeem_round)

    figures |= {
        "kills": nemesis.kills,
        "rounds": len(rounds),
        "acknowledged": size.uses * len(rounds),
        "lost": 0,
        "doubled": 0,
        "cut_before_their_answer": sum(round_.cut for round_ in rounds),
        "kept_though_cut": sum(round_.kept_unheard for round_ in rounds),
        "replays_byte_identical": sum(round_.replays for round_ in rounds),
        "ready_again_p50_s": round(statistics.median(nemesis.restarts_s), 3),
        "ready_again_max_s": round(max(nemesis.restarts_s), 3),
    }
