"""A new record gets values from a record to which it refers, if they are valid for its fields."""

from pathlib import Path

import pytest

from countersign.declare import Model, Number, Ref, Text
from countersign.records.commands.errors import BadInput
from tests.records import inside


class Ware(Model):
    """A product with a price."""

    title = Text(required=True)
    price = Number()


class Sample(Model):
    """A sample that gets the price of a product if the price is low enough."""

    title = Text()
    ware = Ref("ware", fills={"price": "price"})
    price = Number(max_value=9)


async def test_a_value_that_does_not_fit_is_refused_with_the_name_of_its_source(
    database_url: str, tmp_path: Path
) -> None:
    async with inside.open_service(database_url, tmp_path, Ware, Sample) as shop:
        root = shop.administrator()
        cheap, dear = [(await shop.value(root, "ware", "create", title="Oak", price=price))["id"] for price in (9, 10)]
        assert (await shop.value(root, "sample", "create", ware=cheap))["price"] == 9
        error_pattern = (
            r"^sample\.price: the value copied from ware does not fit \(must .* 9.*\); set price explicitly$"
        )
        with pytest.raises(BadInput, match=error_pattern):
            await shop.value(root, "sample", "create", ware=dear)
        assert (await shop.value(root, "sample", "create", ware=dear, price=1))["price"] == 1
