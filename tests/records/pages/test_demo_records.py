"""The demonstration data are consistent, and its first rows are readable with every font."""

import unicodedata

from tests.records.office import Office


def _is_latin(text: object) -> bool:
    return all(not each.isalpha() or unicodedata.name(each).startswith("LATIN") for each in str(text or ""))


def _domain(email: str) -> str:
    return email.rpartition("@")[2]


async def test_the_leads_of_the_demonstration_have_a_person_as_contact_and_a_company_as_party(office: Office) -> None:
    parties = {each["id"]: each for each in await office.all("party", "root")}
    leads = await office.all("lead", "root")

    of_a_party = [each for each in leads if each["party"]]

    assert len(of_a_party) > len(leads) / 2
    assert all(parties[each["party"]]["kind"] == "company" for each in of_a_party)
    assert all(each["contact_name"] != parties[each["party"]]["name"] for each in of_a_party)
    assert all(_domain(each["contact_email"]) == _domain(parties[each["party"]]["email"]) for each in of_a_party)
    assert all(parties[each["party"]]["name"].rpartition(" ")[0] in each["title"] for each in of_a_party)


async def test_parties_of_the_demonstration_have_different_names_and_addresses(office: Office) -> None:
    parties = await office.all("party", "root")

    companies = [each["name"] for each in parties if each["kind"] == "company"]

    assert len(set(companies)) == len(companies)
    assert len({each["email"] for each in parties}) == len(parties)
    assert all(each["email"].isascii() for each in parties)


async def test_few_records_of_the_demonstration_need_other_than_latin_letters_and_open_leads_do_not(
    office: Office,
) -> None:
    parties = {each["id"]: each["name"] for each in await office.all("party", "root")}
    leads = await office.all("lead", "root")

    others = [each for each in leads if not _is_latin([*each.values(), parties.get(each["party"])])]

    assert 0 < len(others) < len(leads) / 10
    assert {each["stage"] for each in others} == {"lost"}
    assert 0 < sum(not _is_latin(each) for each in parties.values()) < len(parties) / 10
