"""A leak channel is a way in which hidden data could become visible. Each channel has a check, and a function that
disables the code that prevents the leak."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.records.office import Office

Check = Callable[[Office], Awaitable[None]]
DisableDefence = Callable[[pytest.MonkeyPatch], None]
OPERATORS = ("eq", "ne", "contains", "in", "gt", "gte", "lt", "lte", "is_null")
CHANNELS: dict[int, "Channel"] = {}

DAN_GRANT: Mapping[str, object] = {
    "model": "lead",
    "commands": "*",
    "clear": "title,stage,party,source",
    "masked": "contact_name,contact_email",
    "write": "title,stage,party,source,contact_name,contact_email",
    "rows": '[{"field": "stage", "op": "in", "value": ["new", "won"]}]',
}


@dataclass(frozen=True)
class Channel:
    """One row of the table of leak channels."""

    number: int
    check: Check
    disable_defence: DisableDefence

    @property
    def name(self) -> str:
        """The name of the channel, such as L07, with the docstring of its check."""
        return f"L{self.number:02d} {(self.check.__doc__ or '').strip().rstrip('.')}"


def channel(number: int, disable_defence: DisableDefence) -> Callable[[Check], Check]:
    """Register a check under its number, with the function that disables its defence."""

    def register(check: Check) -> Check:
        assert number not in CHANNELS
        CHANNELS[number] = Channel(number, check, disable_defence)
        return check

    return register


def assert_same_response(*answers: httpx.Response) -> None:
    """Require that all responses have the same status, headers and bytes."""
    responses = {
        (
            answer.status_code,
            answer.content,
            str(sorted((n, v) for n, v in answer.headers.items() if n != "x-request-id")),
        )
        for answer in answers
    }
    assert len(responses) == 1, "\n".join(answer.text[:300] for answer in answers)


def replace_defence(patch: pytest.MonkeyPatch, owner: Any, name: str, value: object) -> None:
    """Replace a defence for the test."""
    patch.setattr(owner, name, value)


async def create_dan(office: Office, *other_grants: Mapping[str, object]) -> str:
    """Create dan, who sees some of the leads, some of their fields, and whatever else is granted."""
    await office.person("dan", DAN_GRANT, *other_grants)
    return "dan"


def filter_with(field: str, op: str, value: object) -> dict[str, object]:
    """Return a filter with one condition."""
    return {"filter": [{"field": field, "op": op, "value": value}]}
