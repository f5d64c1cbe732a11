"""The demonstration data are consistent, and its first rows are readable with every font."""

import unicodedata

from tests.records.office import Office


def _is_latin(text: object) -> bool:
    return all(
        not character.isalpha() or unicodedata.name(character).startswith("LATIN") for character in str(text or "")
    )


def _domain(email: str) -> str:
    return email.rpartition("@")[2]


async def test_the_leads_of_the_demonstration_have_a_person_as_contact_and_a_company_as_party(office: Office) -> None:
    parties = {party["id"]: party for party in await office.all("party", "root")}
    leads = await office.all("lead", "root")

    of_a_party = [lead for lead in leads if lead["party"]]

    assert len(of_a_party) > len(leads) / 2
    assert all(parties[lead["party"]]["kind"] == "company" for lead in of_a_party)
    assert all(lead["contact_name"] != parties[lead["party"]]["name"] for lead in of_a_party)
    assert all(_domain(lead["contact_email"]) == _domain(parties[lead["party"]]["email"]) for lead in of_a_party)
    assert all(parties[lead["party"]]["name"].rpartition(" ")[0] in lead["title"] for lead in of_a_party)


async def test_parties_of_the_demonstration_have_different_names_and_addresses(office: Office) -> None:
    parties = await office.all("party", "root")

    companies = [party["name"] for party in parties if party["kind"] == "company"]

    assert len(set(companies)) == len(companies)
    assert len({party["email"] for party in parties}) == len(parties)
    assert all(party["email"].isascii() for party in parties)


async def test_few_records_of_the_demonstration_need_other_than_latin_letters_and_open_leads_do_not(
    office: Office,
) -> None:
    parties = {party["id"]: party["name"] for party in await office.all("party", "root")}
    leads = await office.all("lead", "root")

    foreign_leads = [lead for lead in leads if not _is_latin([*lead.values(), parties.get(lead["party"])])]

    assert 0 < len(foreign_leads) < len(leads) / 10
    assert {lead["stage"] for lead in foreign_leads} == {"lost"}
    assert 0 < sum(not _is_latin(party) for party in parties.values()) < len(parties) / 10
