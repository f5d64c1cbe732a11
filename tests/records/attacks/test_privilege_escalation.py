"""A caller cannot give itself or others more rights than it has: not through roles, grants or invitations, and not
through records outside its row scope."""

import pytest

from tests.records.office import Office

TICKET_ROWS = '[{"field": "model", "op": "eq", "value": "ticket"}]'
OWN_LEADS = '[{"field": "owner", "op": "eq", "value": {"stand": "CALLER"}}]'
USERS = {"model": "user", "commands": "get,list,create,update,invite", "clear": "username,is_active", "write": "*"}
ROLES = {"model": "role", "commands": "get,list,create,update", "clear": "*", "write": "*"}
GRANTS = {"model": "grant", "commands": "get,list,create,update", "clear": "*", "write": "*"}
USER_ROLES = {"model": "user_role", "commands": "get,list,create,update", "clear": "*", "write": "*"}
TICKETS = {"model": "ticket", "commands": "get,list,update", "clear": "subject,state", "write": "subject"}


async def _role(office: Office, title: str) -> str:
    return str((await office.first_record("role", title=title))["id"])


async def _user(office: Office, name: str) -> str:
    return str((await office.first_record("user", username=name))["id"])


@pytest.mark.parametrize("name", ["root", "carol"])
async def test_a_manager_cannot_create_an_invitation_link_for_a_person_with_more_rights(
    office: Office, name: str
) -> None:
    await office.person("hr", USERS)
    assert "more rights than you" in await office.refusal_of("hr", "user.invite", id=await _user(office, name))


async def test_a_manager_invites_people_without_roles_and_people_of_its_own_role(office: Office) -> None:
    await office.person("hr", USERS, USER_ROLES, ROLES)
    newcomer = await office.value("hr", "user.create", username="newcomer")
    assert "token=" in (await office.value("hr", "user.invite", id=newcomer["id"]))["link"]
    await office.value("hr", "user_role.create", user=newcomer["id"], role=await _role(office, "role of hr"))
    assert "token=" in (await office.value("hr", "user.invite", id=newcomer["id"]))["link"]


async def _is_valid_link(office: Office, link: str) -> bool:
    return (await office.http.get("/setup", params={"token": link.partition("token=")[2]})).status_code == 200


async def test_an_invitation_link_becomes_invalid_when_the_invited_person_has_more_rights_than_its_creator(
    office: Office,
) -> None:
    await office.person("hr", USERS, ROLES)
    role = (await office.value("root", "role.create", title="wide"))["id"]
    for who, is_open in (("hr", False), ("root", True)):
        for number, model_of_change in enumerate(("user_role", "grant", "role")):
            user = (await office.value("hr", "user.create", username=f"newcomer-{who}-{number}"))["id"]
            if model_of_change != "user_role":
                await office.value("root", "user_role.create", user=user, role=role)
            link = (await office.value(who, "user.invite", id=user))["link"]
            assert await _is_valid_link(office, link)
            if model_of_change == "user_role":
                await office.value("root", "user_role.create", user=user, role=role)
            elif model_of_change == "grant":
                grant = await office.value("root", "grant.create", role=role, model="invoice", commands="get")
                await office.value("root", "grant.delete", id=grant["id"])
            else:
                await office.value("root", "role.update", id=role, rights=None if who == "hr" else "base.unmask")
                await office.value("root", "role.update", id=role, rights="base.unmask" if who == "hr" else None)
            assert await _is_valid_link(office, link) is is_open


@pytest.mark.parametrize("title", ["administrator", "accountant", "clerk"])
async def test_the_titles_of_roles_that_modules_declare_cannot_be_changed_or_given_to_other_roles(
    office: Office, title: str
) -> None:
    await office.person("hr", ROLES)
    for who in ("hr", "root"):
        assert "title" in await office.refusal_of(who, "role.update", id=await _role(office, title), title="old")
        own_role = await _role(office, "role of hr")
        assert "title" in await office.refusal_of(who, "role.update", id=own_role, title=title)
    await office.value("root", "role.delete", id=await _role(office, title), cascade=True)
    assert "title" in await office.refusal_of("hr", "role.create", title=title)
    assert (await office.call("hr", "invoice.list", {"limit": 1})).status_code == 404


async def test_a_role_title_that_an_approval_setting_names_cannot_be_given_to_a_new_role(office: Office) -> None:
    await office.person("hr", ROLES, USER_ROLES)
    await office.value("root", "setting.create", title="approval:lead.delete", value='{"group": "treasurers"}')
    assert "title" in await office.refusal_of("hr", "role.create", title="treasurers")
    role = await office.value("root", "role.create", title="treasurers")
    hr = await _user(office, "hr")
    assert "more than you have" in await office.refusal_of("hr", "user_role.create", user=hr, role=role["id"])


@pytest.mark.parametrize(
    "grant",
    [
        {"model": "invoice", "commands": "get,list", "clear": "*"},
        {"model": "ticket", "commands": "get,list,delete", "clear": "subject"},
        {"model": "ticket", "commands": "get,list", "clear": "subject,requester_email"},
        {"model": "ticket", "commands": "get,list", "masked": "requester_email"},
        {"model": "ticket", "commands": "get,list", "clear": "*"},
        {"model": "ticket", "commands": "get,update", "clear": "subject,state", "write": "state"},
        {"model": "lead", "commands": "get,list", "clear": "title"},
        # The caller may not read requester_email, but could infer it from the tickets that this grant's rows select.
        {
            "model": "ticket",
            "commands": "get,list",
            "clear": "subject",
            "rows": '[{"field": "requester_email", "op": "contains", "value": "a"}]',
        },
    ],
)
async def test_no_person_grants_more_than_they_have(office: Office, grant: dict[str, str]) -> None:
    leads = {"model": "lead", "commands": "get,list", "clear": "title,owner", "rows": OWN_LEADS}
    await office.person("hr", GRANTS, ROLES, TICKETS, leads)
    role = (await office.value("hr", "role.create", title="new"))["id"]
    assert "more than you have" in await office.refusal_of("hr", "grant.create", role=role, **grant)
    less = {"model": "ticket", "commands": "get,list", "clear": "subject"}
    own_grant = await office.value("hr", "grant.create", role=role, **less)
    assert "more than you have" in await office.refusal_of("hr", "grant.update", id=own_grant["id"], **grant)
    await office.value("hr", "grant.create", role=role, **leads)
    assert await office.value("root", "grant.create", role=role, **grant)


async def test_no_person_gives_a_role_with_more_rights_than_their_own(office: Office) -> None:
    hr = await office.person("hr", USER_ROLES, ROLES, TICKETS)
    for title in ("administrator", "accountant", "clerk", "sales_manager"):
        role = await _role(office, title)
        assert "more than you have" in await office.refusal_of("hr", "user_role.create", user=hr, role=role)
    wide = await office.value("root", "role.create", title="wide")
    await office.value("root", "grant.create", role=wide["id"], model="ticket", commands="get,delete", clear="subject")
    assert "more than you have" in await office.refusal_of("hr", "user_role.create", user=hr, role=wide["id"])
    narrow = await office.value("hr", "role.create", title="narrow")
    own_user_role = await office.value("hr", "user_role.create", user=hr, role=narrow["id"])
    assert "more than you have" in await office.refusal_of(
        "hr", "user_role.update", id=own_user_role["id"], role=wide["id"]
    )


async def test_no_person_gives_a_right_that_they_lack(office: Office) -> None:
    await office.person("hr", ROLES, USER_ROLES)
    own_role = await _role(office, "role of hr")
    assert "more than you have" in await office.refusal_of("hr", "role.update", id=own_role, rights="base.unmask")
    assert "more than you have" in await office.refusal_of("hr", "role.create", title="new", rights="base.unmask")
    await office.value("hr", "role.update", id=own_role, description="as before")


async def test_created_and_changed_records_must_be_in_the_row_scope_of_the_caller(office: Office) -> None:
    await office.person("hr", {**GRANTS, "rows": TICKET_ROWS}, ROLES, TICKETS)
    own_role = await _role(office, "role of hr")
    ticket = {"commands": "get,list", "clear": "subject"}
    assert await office.refusal_of("hr", "grant.create", role=own_role, model="lead", **ticket) == "no such record"
    grant = await office.value("hr", "grant.create", role=own_role, model="ticket", **ticket)
    assert await office.refusal_of("hr", "grant.update", id=grant["id"], model="lead") == "no such record"
    assert (await office.first_record("grant", id=grant["id"]))["model"] == "ticket"


async def test_a_caller_cannot_create_a_record_outside_its_row_scope_or_move_a_record_out_of_it(office: Office) -> None:
    ann = await office.person("ann", {"model": "lead", "commands": "*", "clear": "*", "write": "*", "rows": OWN_LEADS})
    alice = await _user(office, "alice")
    user_grant = {"model": "user", "commands": "get,list", "clear": "username"}
    await office.value("root", "grant.create", role=await _role(office, "role of ann"), **user_grant)
    agent = await office.agent("ann", "*")
    for who in ("ann", agent):
        lead = await office.value(who, "lead.create", title="mine")
        assert lead["owner"] == ann
        assert await office.refusal_of(who, "lead.create", title="x", owner=alice) == "no such record"
        assert await office.refusal_of(who, "lead.update", id=lead["id"], owner=alice) == "no such record"
        values_outside = {"stage": "qualified", "owner": alice}
        assert await office.refusal_of(who, "lead.update", id=lead["id"], **values_outside) == "no such record"
        assert (await office.value(who, "lead.update", id=lead["id"], stage="qualified"))["stage"] == "qualified"
    csv = f"title,owner\nx,{alice}\n"
    assert (await office.value("ann", "lead.import", csv=csv))["errors"][0]["error"] == "no such record"
