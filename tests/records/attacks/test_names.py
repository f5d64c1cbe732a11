"""User names that look alike are refused."""

import pytest

from tests.records.office import Office

LOOKING_LIKE_ROOT = (
    "root ",
    " root",
    "ro ot",
    "roo\u200bt",
    "ro\u043et",
    "\u202eroot",
    "\uff52oot",
    "ro\u0307ot",
    "root\u00a0",
    "ro\u00adot",
)
PLAIN = ("ada", "ada.lovelace", "ada_2", "a-b@mail.example", "a+b@mail.example", "müller", "Ольга", "山田はな", "김수")


@pytest.mark.parametrize("name", [*LOOKING_LIKE_ROOT, '<script>"x\'&', "...", "a/b", "١٢"])
async def test_a_confusable_user_name_is_refused_with_the_allowed_characters(
    office: Office, name: str
) -> None:
    assert "letters of one script" in await office.refusal_of("root", "user.create", username=name)
    bob = (await office.first_record("user", username="bob"))["id"]
    assert "letters of one script" in await office.refusal_of("root", "user.update", id=bob, username=name)


async def test_names_in_each_of_many_scripts_are_accepted(office: Office) -> None:
    for name in PLAIN:
        assert (await office.value("root", "user.create", username=name))["username"] == name


async def test_user_names_are_compared_without_case(office: Office) -> None:
    for name in ("Root", "ROOT", "Alice"):
        assert "unique" in await office.refusal_of("root", "user.create", username=name)
    bob = (await office.first_record("user", username="bob"))["id"]
    assert (await office.value("root", "user.update", id=bob, username="Bob"))["username"] == "Bob"


async def test_a_person_with_an_older_name_is_still_looked_after(office: Office) -> None:
    bob = (await office.first_record("user", username="bob"))["id"]
    database = office.service.records.database
    async with database.transaction() as transaction:
        await transaction.run('UPDATE "user" SET username = $2 WHERE id = $1', bob, "bob the clerk")
    assert (await office.value("root", "user.update", id=bob, is_active=False))["is_active"] is False
