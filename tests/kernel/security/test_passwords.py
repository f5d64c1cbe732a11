"""Passwords: rules, hashes, and that a missing account takes the same time as an existing one."""

import asyncio
import random
import unicodedata

import pytest
from argon2.exceptions import InvalidHashError
from zxcvbn import matching

from countersign.kernel.errors import Unavailable
from countersign.kernel.security import passwords

pytestmark = pytest.mark.usefixtures("full_price")
_WORD = "correct horse battery"


async def test_a_password_verifies_only_against_its_own_hash() -> None:
    password_hash = await passwords.hash_password(_WORD)

    assert password_hash.startswith("$argon2id$v=19$m=65536,t=3,p=1$")
    assert await passwords.verify(_WORD, password_hash)
    assert not await passwords.verify(_WORD + "x", password_hash)
    assert not await passwords.verify("", password_hash)


async def test_two_hashes_of_one_password_differ() -> None:
    first_hash, second_hash = await asyncio.gather(passwords.hash_password(_WORD), passwords.hash_password(_WORD))

    assert first_hash != second_hash
    assert _WORD not in first_hash


async def test_composed_and_decomposed_letters_are_the_same_password() -> None:
    password_hash = await passwords.hash_password("Schl\u00fcsselbund")

    assert await passwords.verify("Schlu\u0308sselbund", password_hash)


async def test_a_missing_account_takes_the_same_work_as_a_wrong_password(monkeypatch: pytest.MonkeyPatch) -> None:
    password_hash = await passwords.hash_password(_WORD)
    compared: list[str] = []
    matches = passwords._matches

    def match_counted(password: str, stored_hash: str) -> bool:
        compared.append(stored_hash.rpartition("$")[0].rpartition("$")[0])
        return matches(password, stored_hash)

    monkeypatch.setattr(passwords, "_matches", match_counted)
    for password, stored_hash in (
        ("wrong password", password_hash),
        ("wrong password", None),
        ("w" * 100_000, password_hash),
    ):
        assert not await passwords.verify(password, stored_hash)

    # The work of Argon2 depends only on its parameters. A measured time would also depend on other processes.
    assert compared == [password_hash.rpartition("$")[0].rpartition("$")[0]] * 3


async def test_the_dummy_password_opens_no_missing_account() -> None:
    assert not await passwords.verify("no account has this", None)


async def test_the_event_loop_turns_while_a_password_is_hashed() -> None:
    hashing_task = asyncio.create_task(passwords.hash_password(_WORD))
    turn_count = 0
    while not hashing_task.done():
        await asyncio.sleep(0)
        turn_count += 1

    assert turn_count > 100


async def test_a_flood_of_sign_ins_is_refused_beyond_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "MAX_WAITING", 2)

    answers = await asyncio.gather(*(passwords.verify(_WORD, None) for _ in range(3)), return_exceptions=True)

    assert answers[:2] == [False, False]
    assert isinstance(answers[2], Unavailable)
    assert answers[2].headers == {"Retry-After": "5"}
    assert await passwords.verify(_WORD, None) is False


@pytest.mark.parametrize(
    "password", ["", " " * 20, "\t\n" * 10, "short one", "x" * 201, "half a pair \ud800"], ids=repr
)
async def test_a_weak_password_is_refused_with_its_remedy(password: str) -> None:
    with pytest.raises(passwords.WeakPassword) as refusal:
        await passwords.hash_password(password)

    assert "10 to 200 characters" in refusal.value.remedy


@pytest.mark.parametrize(
    "password",
    ["1234567890", "password123", "qwertyuiop", "Passw0rd2026", "iloveyou2024", "abcabcabcabc", "x" * 200],
)
async def test_a_common_password_is_refused(password: str) -> None:
    with pytest.raises(passwords.WeakPassword, match="easy to guess"):
        await passwords.hash_password(password)


@pytest.mark.parametrize("password", ["ada.lovelace", "northwind2026", "Countersign1", "lovelace12"])
async def test_a_password_from_personal_data_is_refused(password: str) -> None:
    with pytest.raises(passwords.WeakPassword, match="easy to guess"):
        await passwords.hash_password(password, "ada.lovelace@northwind.example")


@pytest.mark.parametrize("password", ["\u00e9" * 5, "\ufdfa" * 200], ids=["five letters", "a ligature of 18 letters"])
async def test_the_length_limit_applies_to_the_normalised_password(password: str) -> None:
    with pytest.raises(passwords.WeakPassword, match="characters"):
        await passwords.hash_password(unicodedata.normalize("NFD", password))


async def test_a_long_password_may_be_typed_on_another_system() -> None:
    composed = "".join(chr(0xC0 + number % 20) for number in range(0, 150 * 7, 7))
    password_hash = await passwords.hash_password(composed)

    assert await passwords.verify(unicodedata.normalize("NFD", composed), password_hash)


@pytest.mark.parametrize("password", ["4@8({[<3691!|70$5+%2" * 4, "%+$|!<[{(@" + "4836917052" * 7, "@1" * 200])
def test_any_password_is_shortened_to_bound_its_strength_estimate(password: str) -> None:
    bounded = passwords.bounded_for_estimate(password)

    assert len(bounded) <= 72
    assert len(matching.enumerate_l33t_subs(matching.relevant_l33t_subtable(bounded, matching.L33T_TABLE))) < 100


async def test_a_long_password_is_read_to_its_end() -> None:
    # Letters with three combining marks each, which count as one character: the maximum length of a typed password.
    long_password = "".join(
        f"{letter}\u0313\u0300\u0345" for letter in random.Random(1).choices("\u03b1\u03b7\u03c9", k=200)
    )
    password_hash = await passwords.hash_password(long_password)

    assert len(long_password) == 800
    assert await passwords.verify(long_password, password_hash)
    assert not await passwords.verify(long_password + "x", password_hash)
    with pytest.raises(passwords.WeakPassword, match="801 characters"):
        await passwords.hash_password(long_password + "x")


async def test_a_password_that_is_hard_to_guess_is_accepted() -> None:
    password_hash = await passwords.hash_password("tinsel under a harbour", "ada.lovelace@northwind.example")

    assert await passwords.verify("tinsel under a harbour", password_hash)


@pytest.mark.parametrize("password", ["x" * 10, "x" * 200, "\U0001f511" * 10])
def test_the_bounds_themselves_are_allowed(password: str) -> None:
    passwords.check_rules(password)


async def test_a_hash_with_weaker_parameters_must_be_replaced() -> None:
    current = await passwords.hash_password(_WORD)

    assert not passwords.needs_rehash(current)
    assert passwords.needs_rehash(current.replace("t=3", "t=1"))


async def test_a_damaged_row_is_an_error_and_not_a_wrong_password() -> None:
    with pytest.raises(InvalidHashError):
        await passwords.verify(_WORD, "plainly no hash")
