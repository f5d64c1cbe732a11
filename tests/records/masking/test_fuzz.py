"""Mistyped, foreign and outdated tokens are invalid. Above all, they never mean another person."""

import dataclasses
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from countersign.records.access.view import Caller
from countersign.records.commands import unmask_input
from countersign.records.commands.errors import BadInput, TooManyUnknownTokens
from countersign.records.commands.token_guess_limit import TokenGuessLimit
from countersign.records.masking.placeholder_tokens import SIZE, Grammar, Permutation
from tests.figures import Figures
from tests.records.inside import InProcessService

LIVE_VALUE_COUNT = 100_000
BATCH = 10_000
LABELS = ("EMAIL", "PHONE", "PERSON", "LITERAL")
GRAMMAR = Grammar(LABELS)


class MemoryVault:
    """The rows of pii_value in memory: value ids are mapped to labels. Ids of deleted values are kept separately."""

    def __init__(self, rng: random.Random) -> None:
        ids = rng.sample(range(SIZE), 2 * LIVE_VALUE_COUNT)
        self.live = {id_: rng.choice(LABELS[:3]) for id_ in ids[:LIVE_VALUE_COUNT]}
        self.erased = {id_: rng.choice(LABELS[:3]) for id_ in ids[LIVE_VALUE_COUNT:]}


def change_digit(rng: random.Random, token: str) -> str:
    """Return the token with one digit replaced by another."""
    position = rng.randrange(token.index("_") + 1, len(token))
    return (
        token[:position]
        + rng.choice([digit for digit in "0123456789" if digit != token[position]])
        + token[position + 1 :]
    )


def swap_digits(rng: random.Random, token: str) -> str:
    """Return the token with two neighbouring digits swapped."""
    position = rng.randrange(token.index("_") + 1, len(token) - 1)
    return token[:position] + token[position + 1] + token[position] + token[position + 2 :]


def drop_digit(rng: random.Random, token: str) -> str:
    """Return the token without one digit."""
    position = rng.randrange(token.index("_") + 1, len(token))
    return token[:position] + token[position + 1 :]


def add_digit(rng: random.Random, token: str) -> str:
    """Return the token with an additional digit."""
    position = rng.randrange(token.index("_") + 1, len(token) + 1)
    return token[:position] + rng.choice("0123456789") + token[position:]


def neighbour(rng: random.Random, token: str) -> str:
    """Return the token with a number that differs by 1 or 2."""
    label, _, number = token.partition("_")
    return f"{label}_{int(number) + rng.choice([-2, -1, 1, 2])}"


def other_label(rng: random.Random, token: str) -> str:
    """Return the number with another label."""
    label, _, number = token.partition("_")
    return f"{rng.choice([candidate for candidate in LABELS[:3] if candidate != label])}_{number}"


def random_token(rng: random.Random, token: str) -> str:
    """Return a token with a random number."""
    return f"{token.partition('_')[0]}_{rng.randrange(SIZE)}"


MUTATIONS: tuple[Callable[[random.Random, str], str], ...] = (
    change_digit,
    change_digit,
    swap_digits,
    drop_digit,
    add_digit,
    neighbour,
    other_label,
    random_token,
)


def invalid_token_batches(
    rng: random.Random, vault: MemoryVault, own_permutation: Permutation, foreign_permutation: Permutation
) -> Iterator[list[str]]:
    """Yield batches of tokens that are invalid for the caller with `own_permutation`."""
    live, erased = list(vault.live.items()), list(vault.erased.items())
    while True:
        live_values, erased_values = rng.choices(live, k=BATCH), rng.choices(erased, k=BATCH)
        own_numbers = own_permutation.encode([value_id for value_id, _ in live_values])
        foreign_numbers = foreign_permutation.encode([value_id for value_id, _ in live_values])
        stale_numbers = own_permutation.encode([value_id for value_id, _ in erased_values])
        batch: list[str] = []
        for position, (_, label) in enumerate(live_values):
            kind = rng.randrange(8)
            if kind == 0:
                batch.append(f"{label}_{foreign_numbers[position]}")
            elif kind == 1:
                batch.append(f"{erased_values[position][1]}_{stale_numbers[position]}")
            else:
                token = f"{label}_{own_numbers[position]}"
                mutated = rng.choice(MUTATIONS)(rng, token)
                batch.append(mutated if mutated != token else random_token(rng, token))
        yield batch


def count_resolved(vault: MemoryVault, own_permutation: Permutation, tokens: list[str]) -> int:
    """Return how many of the tokens stand for a live value of the label that the token has."""
    valid_tokens = [token for text in tokens for token in GRAMMAR.tokens(text) if token.number < SIZE]
    value_ids = own_permutation.decode([token.number for token in valid_tokens])
    return sum(vault.live.get(value_id) == token.label for value_id, token in zip(value_ids, valid_tokens, strict=True))


def test_no_mutated_foreign_or_stale_token_means_a_person(is_full: bool, figures: Figures) -> None:
    """The test tries 10,000 tokens, and a million with --full, against 100,000 live values.

    A random number is the number of a live value with the probability 100,000 / 2^48 = 3.6e-10. The label
    must match too, which one of three does. So the probability that one of a million tokens stands for a live value is
    1.2e-4. The seed is fixed, so the result is always the same.
    """
    rng = random.Random(48)
    vault = MemoryVault(rng)
    own_permutation, foreign_permutation = Permutation(rng.randbytes(32)), Permutation(rng.randbytes(32))
    token_count = 1_000_000 if is_full else 10_000
    began = time.monotonic()
    tried_count = wrong_count = 0

    for batch in invalid_token_batches(rng, vault, own_permutation, foreign_permutation):
        wrong_count += count_resolved(vault, own_permutation, batch)
        tried_count += len(batch)
        if tried_count >= token_count:
            break

    figures |= {
        "tokens": tried_count,
        "live_values": LIVE_VALUE_COUNT,
        "wrong_person": wrong_count,
        "expected": tried_count * LIVE_VALUE_COUNT / SIZE,
    }
    figures["took_s"] = round(time.monotonic() - began, 1)
    assert wrong_count == 0
    # The same function finds every person whose token is valid.
    live_values = list(vault.live.items())[:BATCH]
    numbers = own_permutation.encode([value_id for value_id, _ in live_values])
    tokens = [f"{label}_{number}" for (_, label), number in zip(live_values, numbers, strict=True)]
    assert count_resolved(vault, own_permutation, tokens) == BATCH


@pytest.fixture
async def contact_ids(book: InProcessService, root: Caller) -> list[str]:
    """Create contacts with an e-mail address and a phone number, and return their ids."""
    values = [{"email": f"person{number}@example.com", "phone": f"+49{number:08}"} for number in range(150)]
    return [(await book.value(root, "contact", "create", **value))["id"] for value in values]


class UnlimitedGuesses(TokenGuessLimit):
    """A limit that does not count unknown tokens."""

    def __init__(self) -> None:
        """Create a limit without counters."""

    def count(self, caller: Caller) -> None:
        """Count nothing."""


def tokens_of(contact_by_id: Mapping[str, dict[str, Any]], contact_ids: Iterable[str]) -> list[str]:
    """Return the tokens of e-mail addresses and phone numbers in the contact_ids as a caller sees them."""
    return [contact_by_id[contact][name] for contact in contact_ids for name in ("email", "phone")]


async def seen_by(book: InProcessService, caller: Caller) -> dict[str, dict[str, Any]]:
    """Map the ids of all contacts to the contacts as the caller sees them."""
    return {row["id"]: row for row in await book.value(caller, "contact", "list")}


async def test_the_commands_refuse_every_unknown_token(
    book: InProcessService, root: Caller, agent: Caller, contact_ids: list[str]
) -> None:
    """The test sends 500 tokens against the 300 values of a database. The probability that one of them is valid is
    5e-10."""
    rng = random.Random(7)
    deleted_ids, existing_ids = contact_ids[:50], contact_ids[50:]
    contacts_seen_by_agent = await seen_by(book, agent)
    foreign_tokens = tokens_of(await seen_by(book, await book.agent("clerk")), existing_ids)
    for record_id in deleted_ids:
        await book.value(root, "contact", "delete", id=record_id)
    # This test is not about the limit on unknown tokens, but about what the limit protects.
    engine = dataclasses.replace(book.service.engine, token_guesses=UnlimitedGuesses())
    run = dataclasses.replace(book.run(agent), engine=engine)
    live_tokens, stale_tokens = (
        tokens_of(contacts_seen_by_agent, existing_ids),
        tokens_of(contacts_seen_by_agent, deleted_ids),
    )
    mutated = {rng.choice(MUTATIONS)(rng, rng.choice(live_tokens)) for _ in range(200)} - set(live_tokens)

    for token in engine.grammar.tokens(" ".join([*stale_tokens, *foreign_tokens, *sorted(mutated)])):
        with pytest.raises(BadInput, match="unknown token"):
            await unmask_input.resolve(run, token)

    for token in engine.grammar.tokens(" ".join(live_tokens)):
        assert (await unmask_input.resolve(run, token))[1].startswith("person" if token.label == "EMAIL" else "+49")


async def test_guessing_tokens_is_slowed_down(book: InProcessService, agent: Caller) -> None:
    outcomes: list[str] = []
    for number in range(25):
        try:
            await book.value(agent, "contact", "create", email=f"EMAIL_{number}")
        except (BadInput, TooManyUnknownTokens) as error:
            outcomes.append(type(error).__name__)

    assert outcomes[:20] == ["BadInput"] * 20
    assert outcomes[20:] == ["TooManyUnknownTokens"] * 5
