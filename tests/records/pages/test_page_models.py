"""Saved views, dashboards and favourites: their owners, who sees them, and their content."""

import json

import pytest

from tests.records.office import Office


async def test_an_unshared_view_is_seen_only_by_its_owner(office: Office) -> None:
    query = json.dumps({"filter": [{"field": "stage", "op": "eq", "value": "new"}]})
    view = await office.value("alice", "view.create", model="lead", name="New ones", query=query, columns='["title"]')

    assert await office.all("view", "bob") == []
    assert await office.refusal_of("bob", "view.get", id=view["id"]) == "no such record"
    await office.value("alice", "view.update", id=view["id"], shared=True)

    assert [view["name"] for view in await office.all("view", "bob")] == ["New ones"]
    assert await office.refusal_of("bob", "view.update", id=view["id"], name="Mine") == "no such record"
    assert await office.refusal_of("bob", "view.delete", id=view["id"]) == "no such record"


@pytest.mark.parametrize("model", ["view", "dashboard"])
async def test_only_some_roles_share(office: Office, model: str) -> None:
    values = {"model": "lead"} if model == "view" else {}

    own_page = await office.value("bob", f"{model}.create", name="Mine", **values)

    assert "shared" in await office.refusal_of("bob", f"{model}.update", id=own_page["id"], shared=True)
    assert "shared" in await office.refusal_of("bob", f"{model}.create", name="Another", shared=True, **values)


async def test_no_caller_creates_a_view_for_another_person(office: Office) -> None:
    other_user = (await office.first_record("user", username="bob"))["id"]

    assert "owner" in await office.refusal_of("alice", "view.create", model="lead", name="x", owner=other_user)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"query": "{"}, "view.query is not valid JSON"),
        ({"query": '{"limit": 5}'}, "unknown key limit in view.query"),
        ({"query": '{"filter": [{"field": 5}]}'}, "a filter condition needs field"),
        ({"columns": '{"a": 1}'}, "view.columns is not valid JSON"),
        ({"columns": json.dumps(["a"] * 101)}, "view.columns may have 100 columns at most"),
        ({"model": "No model"}, "view.model must be the name of a model"),
    ],
)
async def test_a_malformed_view_is_refused(office: Office, values: dict[str, str], text: str) -> None:
    answer = await office.refusal_of("alice", "view.create", **{"model": "lead", "name": "Odd", **values})

    assert answer.startswith(text)


async def test_a_dashboard_keeps_valid_tiles(office: Office) -> None:
    tile = {"kind": "line", "model": "invoice", "fn": "sum", "field": "total_minor", "date": "issued", "step": "week"}
    tiles = json.dumps([tile, {"kind": "text", "text": "Hello", "w": 12}])

    dashboard = await office.value("carol", "dashboard.create", name="Money", tiles=tiles, shared=True)

    assert json.loads(dashboard["tiles"])[0]["model"] == "invoice"
    assert [dashboard["name"] for dashboard in await office.all("dashboard", "alice")] == ["Money"]


@pytest.mark.parametrize(
    ("tiles", "text"),
    [
        ([{"kind": "pie"}], "dashboard.tiles is not valid JSON"),
        ([{"kind": "kpi", "w": 13}], "dashboard.tiles is not valid JSON"),
        ([{"kind": "kpi", "script": "x"}], "dashboard.tiles is not valid JSON"),
        ([{"kind": "kpi"}] * 25, "dashboard.tiles may have 24 tiles at most"),
        ([{"kind": "list", "filter": [{"op": "eq"}]}], "a filter condition needs field"),
    ],
)
async def test_malformed_tiles_are_refused(office: Office, tiles: object, text: str) -> None:
    answer = await office.refusal_of("alice", "dashboard.create", name="Odd", tiles=json.dumps(tiles))

    assert answer.startswith(text)


async def test_favourites_belong_to_their_person_and_lead_to_pages_of_the_service(office: Office) -> None:
    await office.value("alice", "favourite.create", name="Leads", path="/models/lead")

    assert [favourite["name"] for favourite in await office.all("favourite", "alice")] == ["Leads"]
    assert await office.all("favourite", "bob") == []
    for path in ("https://evil.example", "//evil.example", "/a b", "/\\evil.example"):
        assert "favourite.path must be" in await office.refusal_of("alice", "favourite.create", name="x", path=path)


async def test_agents_have_none_of_the_page_models(office: Office) -> None:
    agent = await office.agent("root", "*")

    for command in ("view.list", "dashboard.list", "favourite.list", "comment.people", "user.home", "user.find"):
        assert (await office.call(agent, command)).status_code == 404
