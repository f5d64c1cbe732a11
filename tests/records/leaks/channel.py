"""A leak channel: what must hold, how its defence is switched off, and the words both share."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.records.office import Office

Check = Callable[[Office], Awaitable[None]]
Off = Callable[[pytest.MonkeyPatch], None]
OPERATORS = ("eq", "ne", "contains", "in", "gt", "gte", "lt", "lte", "is_null")
CHANNELS: dict[int, "Channel"] = {}

DAN: Mapping[str, object] = {
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
    off: Off

    @property
    def name(self) -> str:
        """L07 and what its check says."""
        return f"L{self.number:02d} {(self.check.__doc__ or '').strip().rstrip('.')}"


def channel(number: int, off: Off) -> Callable[[Check], Check]:
    """Enter a check under its number, with what switches its defence off."""

    def enter(check: Check) -> Check:
        assert number not in CHANNELS
        CHANNELS[number] = Channel(number, check, off)
        return check

    return enter


def same(*answers: httpx.Response) -> None:
    """All answers are the same in status, headers and bytes."""
    seen = {
        (each.status_code, each.content, str(sorted((n, v) for n, v in each.headers.items() if n != "x-request-id")))
        for each in answers
    }
    assert len(seen) == 1, "\n".join(each.text[:300] for each in answers)


def put(patch: pytest.MonkeyPatch, where: Any, name: str, value: object) -> None:
    """Put something in the place of a defence."""
    patch.setattr(where, name, value)


async def dan(office: Office, *more: Mapping[str, object]) -> str:
    """Somebody who sees a part of the leads, some of their fields, and what else is granted."""
    await office.person("dan", DAN, *more)
    return "dan"


def condition(field: str, op: str, value: object) -> dict[str, object]:
    """A filter of one condition."""
    return {"filter": [{"field": field, "op": op, "value": value}]}
