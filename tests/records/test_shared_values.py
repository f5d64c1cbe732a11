"""The field `shared_by`: records may share a value only if the field is equal in the records to which they refer, and
this field cannot be changed while they do."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from countersign.declare import Grant, Model, Ref, Text
from countersign.records.commands.errors import BadInput
from tests.records import inside
from tests.records.inside import InProcessService


class Deal(Model):
    """A deal with a buyer."""

    title = Text(required=True)
    buyer = Text()


class Slip(Model):
    """A slip. Its code may be on several deals of one buyer."""

    deal = Ref("deal", required=True)
    code = Text(unique_with="deal", shared_by="buyer")


@pytest.fixture
async def shop(database_url: str, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """A service with these models."""
    async with inside.open_service(database_url, tmp_path, Deal, Slip) as service:
        yield service


async def test_the_scope_of_a_shared_value_cannot_change_while_records_have_the_value(shop: InProcessService) -> None:
    root = shop.administrator()
    blind = await shop.person(Grant(model="deal", commands="*", clear="*", write="*"))
    deals = [(await shop.value(root, "deal", "create", title="d", buyer="Ada"))["id"] for _ in range(2)]
    slips = [(await shop.value(root, "slip", "create", deal=deal, code="c"))["id"] for deal in deals]

    error_text = "buyer must stay while a slip with a code refers to the record; empty code there first"
    with pytest.raises(BadInput, match=rf"^deal\.update is refused: {error_text}$"):
        await shop.value(root, "deal", "update", id=deals[0], buyer="Bob")
    with pytest.raises(BadInput, match=r"^deal\.update is refused$"):
        await shop.value(blind, "deal", "update", id=deals[0], buyer="Bob")
    await shop.value(root, "deal", "update", id=deals[0], buyer="Ada", title="other")

    await shop.value(root, "slip", "update", id=slips[0], code=None)
    assert (await shop.value(root, "deal", "update", id=deals[0], buyer="Bob"))["buyer"] == "Bob"
    with pytest.raises(BadInput, match="code"):
        await shop.value(root, "slip", "update", id=slips[0], code="c")
