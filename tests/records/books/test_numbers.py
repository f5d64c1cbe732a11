"""Invoice numbers: one series for each year or, with a setting, one for each party and year. The numbers have no
gaps."""

from typing import Any

import pytest

from tests.records.office import Office

SETTING = "billing.invoice_numbers"


async def post(office: Office, party: str) -> str:
    """Post a new invoice of the party, and return its number."""
    invoice = (await office.value("carol", "invoice.create", party=party))["id"]
    await office.value("carol", "invoice_line.create", invoice=invoice, description="Work", unit_price_minor=5)
    posted_invoice: dict[str, Any] = await office.value("carol", "invoice.post", id=invoice)
    return str(posted_invoice["number"])


async def test_a_series_for_each_party_reveals_nothing_of_other_parties(office: Office) -> None:
    ada, bob = [party["id"] for party in await office.all("party")][:2]
    first_number = await post(office, ada)
    setting = await office.value("root", "setting.create", title=SETTING, value='"party"')
    year = first_number[:4]
    numbers = [await post(office, invoice) for invoice in (ada, bob, bob, ada)]
    assert numbers == [
        f"{year}-{ada[:6]}-000001",
        f"{year}-{bob[:6]}-000001",
        f"{year}-{bob[:6]}-000002",
        f"{year}-{ada[:6]}-000002",
    ]
    await office.value("root", "setting.update", id=setting["id"], value='"year"')
    assert int((await post(office, ada))[5:]) == int(first_number[5:]) + 1


@pytest.mark.parametrize("value", ["party", '"month"', '{"n": 1}', "1"])
async def test_a_module_setting_accepts_only_its_options(office: Office, value: str) -> None:
    reason = await office.refusal_of("root", "setting.create", title=SETTING, value=value)
    assert reason == f'setting.value of {SETTING} must be one of "year", "party"'
