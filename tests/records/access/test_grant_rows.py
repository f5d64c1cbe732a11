"""Row conditions of grants that an administrator writes: they are stored as written, or refused with the reason."""

import pytest

from countersign.declare import CALLER, TODAY, Where, where
from countersign.records import modules
from countersign.records.access.grants import BadGrant, read_rows, write_rows

LEAD = modules.found(["party", "crm"]).models["lead"]


@pytest.mark.parametrize("text", [None, "", " \n", "[]"])
def test_no_rows_mean_every_record(text: str | None) -> None:
    assert read_rows(LEAD, text) == ()


def test_a_written_grant_is_read_back_unchanged() -> None:
    rows = (
        where("owner", eq=CALLER),
        where("expected_close", lte=TODAY),
        where("stage", in_=["new", "won"]),
        where("party", is_null=False),
        where("id", ne="0" * 24),
    )

    assert read_rows(LEAD, write_rows(rows)) == rows
    assert write_rows(()) is None


def test_a_person_may_be_among_several_values() -> None:
    text = '[{"field": "owner", "op": "in", "value": [{"stand": "CALLER"}]}]'

    assert read_rows(LEAD, text) == (Where("owner", "in", [CALLER]),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("owner", "rows: it is not valid JSON"),
        ("{}", "rows: the value must be an array"),
        ('[{"field": "owner", "op": "eq"}]', "rows: 0/value is required"),
        ('[{"field": "owner", "op": "eq", "value": 1, "or": 2}]', "rows: 0/or is unknown here"),
        ('[{"field": "owner", "op": "like", "value": "a"}]', "op must be one of eq, ne"),
        ('[{"field": "colour", "op": "eq", "value": "a"}]', "no such field"),
        ('[{"field": "owner", "op": "gt", "value": "a"}]', "knows only the operators"),
        ('[{"field": "owner", "op": "is_null", "value": "yes"}]', "True or False"),
        ('[{"field": "stage", "op": "in", "value": "new"}]', "takes a list"),
        ('[{"field": "stage", "op": "in", "value": []}]', "1 to 1000"),
        ('[{"field": "stage", "op": "eq", "value": "sold"}]', "must be one of new"),
        ('[{"field": "expected_revenue_minor", "op": "eq", "value": {"stand": "TODAY"}}]', "compared with a Date"),
        ('[{"field": "expected_revenue_minor", "op": "eq", "value": {"stand": "CALLER"}}]', "CALLER is for"),
        ('[{"field": "expected_close", "op": "in", "value": [{"stand": "TODAY"}]}]', "cannot be in a list"),
        ('[{"field": "owner", "op": "eq", "value": {"stand": "BOSS"}}]', "must read"),
        ('[{"field": "owner", "op": "eq", "value": {"stand": "CALLER", "or": 1}}]', "must read"),
        ("[" + ", ".join(['{"field": "title", "op": "eq", "value": "a"}'] * 51) + "]", "at most 50"),
    ],
)
def test_a_grant_that_would_fail_in_every_call_is_refused_at_once(text: str, reason: str) -> None:
    with pytest.raises(BadGrant) as refusal:
        read_rows(LEAD, text)

    assert reason in refusal.value.detail
