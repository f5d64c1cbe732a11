"""Runs commands that may be refused, or become plans."""

import pytest

from countersign.kernel.errors import Refused
from countersign.records.access.view import Caller
from countersign.records.dispatch import require_command
from tests.records.inside import InProcessService


async def refusal(service: InProcessService, caller: Caller, model: str, command: str, **body: object) -> str:
    """Return the text with which a command is refused."""
    with pytest.raises(Refused) as refused:
        await service.value(caller, model, command, **body)
    return refused.value.detail


async def outcome(service: InProcessService, caller: Caller, model: str, command: str, **body: object) -> object:
    """Return the value of a command, or its proposal."""
    view = require_command(caller, model, command)
    return (await service.service.dispatch.run(caller, view, command, body, "request")).value


async def scout(service: InProcessService) -> Caller:
    """Return an agent of a person who sees everything."""
    return await service.caller_of(await service.issue_agent_token(await service.member()))
