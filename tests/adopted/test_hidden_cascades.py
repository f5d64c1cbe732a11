"""A plan of an agent does not show that a record which the agent does not see refers to the one that it deletes."""

from dataclasses import replace
from pathlib import Path

import psycopg

from countersign.declare import Grant, where
from countersign.records.access.view import Caller
from countersign.records.approvals.proposals import Proposal
from countersign.records.dispatch import require_command
from tests.adopted.shop import Shop, make_postgres, open_shop
from tests.adopted.test_marked_rows import _registry
from tests.servers.postgres import Cluster

TABLES = """
ALTER TABLE "Orders" DROP CONSTRAINT "Orders_customer_id_fkey";
ALTER TABLE "Orders" ADD FOREIGN KEY (customer_id) REFERENCES customer ON DELETE SET NULL;
CREATE FUNCTION idle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE TRIGGER touched BEFORE UPDATE ON "Orders" FOR EACH ROW EXECUTE FUNCTION idle();
"""


async def _effects(shop: Shop, agent: Caller, record_id: str) -> object:
    view, body = require_command(agent, "customer", "delete"), {"id": record_id, "cascade": True}
    proposal = (await shop.inside.service.dispatch.run(agent, view, "delete", body, "request")).value
    assert isinstance(proposal, Proposal)
    return (await shop.inside.value(agent, "plan", "get", id=proposal.plan_id))["effects"]


async def test_triggers_of_hidden_records_are_not_counted(
    postgres_cluster: Cluster, postgres_url: str, tmp_path: Path
) -> None:
    url = make_postgres(postgres_cluster, postgres_url)
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(TABLES.encode())
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO reader_{name}".encode())
        connection.execute(f'GRANT UPDATE, DELETE ON customer, "Orders" TO reader_{name}'.encode())
    async with open_shop(url, tmp_path, _registry("", is_written=True), is_shared=True) as shop:
        member = await shop.inside.member()
        full = await shop.inside.caller_of(await shop.inside.issue_agent_token(member))
        ada, _, zoe = await shop.inside.value(full, "customer", "list")
        paid = Grant(model="order", commands="*", clear="*", rows=(where("state", eq="paid"),))
        everything = [Grant(model=each, commands="*", clear="*", write="*") for each in ("customer", "plan")]
        limited = await shop.inside.agent("scout", *everything, paid, user_id=member.user_id)
        limited = replace(limited, credential_id=full.credential_id)

        assert await _effects(shop, limited, ada["id"]) == await _effects(shop, limited, zoe["id"]) == []
        assert "the database itself does more: 1 trigger of order" in str(await _effects(shop, full, ada["id"]))
