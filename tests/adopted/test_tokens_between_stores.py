"""Tokens of connected tables in records of our own, and tokens of our own records in connected tables."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from countersign.declare import Grant, Module, Role, Text
from countersign.declare.registry import Registry
from countersign.records import base_models
from countersign.records.access.view import Caller
from countersign.records.approvals import decisions
from countersign.records.approvals.proposals import Proposal
from countersign.records.dispatch import require_command
from tests.adopted.shop import MARK, MODULE, Shop, make_postgres, open_shop
from tests.adopted.test_sessions import POLICIES, SESSION
from tests.declare.sample_modules import model
from tests.servers.postgres import Cluster

CARD = model("Card", {"email": Text(personal="EMAIL")})
CLERK = Role("clerk", Grant(model="customer", clear="*"), Grant(model="card", clear="*"))


def _registry(session: Mapping[str, str]) -> Registry:
    models = []
    for each in MODULE.models:
        assert each.declared.table is not None
        table = replace(each.declared.table, writable=True)
        models.append(model(each.__name__, each.declared.fields, table=table))
    shop = Module("shop", version="1.0.0", models=tuple(models), search_path=("public",), session=session)
    desk = Module("desk", version="1.0.0", models=(CARD,), roles=(CLERK,), needs=("shop",))
    return Registry([base_models.MODULE, shop, desk])


@pytest.fixture(params=[{}, SESSION], ids=["without policies", "with policies"])
async def shop(
    request: pytest.FixtureRequest, postgres_cluster: Cluster, postgres_url: str, tmp_path: Path
) -> AsyncIterator[Shop]:
    """The service over a shop and a model of our own. With policies, the third customer belongs to another tenant."""
    url = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        if request.param:
            connection.execute(b"SET app.tenant = '1'; SET app.account = 'a'")
            connection.execute(POLICIES.encode())
            connection.execute(b"UPDATE customer SET tenant = 2 WHERE customer_id = 3")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO reader_{name}".encode())
        connection.execute(f"GRANT INSERT, UPDATE ON customer TO reader_{name}".encode())
    async with open_shop(url, tmp_path, _registry(request.param), is_shared=True) as opened:
        yield opened


async def _agent(shop: Shop) -> Caller:
    inside = shop.inside
    member = await inside.member()
    await inside.value(inside.administrator(), "user", "update", id=member.user_id, tenant="1", external_id="a")
    return await inside.caller_of(await inside.issue_agent_token(member))


async def _outcome(shop: Shop, agent: Caller, model_name: str, name: str, **body: object) -> object:
    view = require_command(agent, model_name, name)
    return (await shop.inside.service.dispatch.run(agent, view, name, body, "request")).value


async def test_a_value_of_a_row_that_a_policy_hides_from_some_readers_is_copied_after_an_approval(shop: Shop) -> None:
    agent = await _agent(shop)
    customers = await shop.inside.value(agent, "customer", "list")

    outcome = await _outcome(shop, agent, "card", "create", email=customers[1]["email"])

    has_policies = bool(shop.inside.service.engine.registry.session)
    assert isinstance(outcome, Proposal) == has_policies


async def test_a_token_of_a_text_in_clear_stays_the_same_in_a_connected_table_and_back(shop: Shop) -> None:
    agent = await _agent(shop)
    ada, bob, *_ = await shop.inside.value(agent, "customer", "list")
    card = await shop.inside.value(agent, "card", "create", email=f"bob{MARK}@example.com")

    proposal = await _outcome(shop, agent, "customer", "update", id=ada["id"], email=card["email"])
    assert isinstance(proposal, Proposal)
    callers = shop.inside.service.callers
    person = await callers.person(shop.inside.service.records.database, agent.user_id)
    assert person is not None
    decision = await decisions.approve(shop.inside.run(person), callers, proposal.plan_id)
    again = await shop.inside.value(agent, "customer", "get", id=ada["id"])
    copied = await _outcome(shop, agent, "card", "create", email=again["email"])

    assert decision.state == "executed"
    assert again["email"] == card["email"] != bob["email"]
    assert not isinstance(copied, Proposal)
