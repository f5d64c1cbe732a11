"""GET /sandbox, /sandbox/api/v1/health and /sandbox/api/v1/telemetry."""

import asyncio
from pathlib import Path

import msgspec

from countersign.kernel.http.html import FORMATS, FormatQuery, render_format
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, Route, route
from countersign.store.auth.callers import StoreRequest
from countersign.store.context import Store
from countersign.store.sandbox import folders
from countersign.store.sandbox.folders import SandboxesFull


class SandboxMetadata(msgspec.Struct):
    """The sandbox metadata of the API document."""

    sandbox: bool
    status: str
    environment: str
    free_tier: bool
    self_serve_keys: bool


class SandboxHealth(msgspec.Struct):
    """The sandbox health of the API document."""

    status: str
    environment: str


class SandboxTelemetry(msgspec.Struct):
    """The sandbox telemetry of the API document; `active_agents` are the callers of the last 15 minutes."""

    status: str
    active_agents: int


ENVIRONMENT = "sandbox"
ACTIVE_S = 900


async def show_sandbox(call: StoreRequest[FormatQuery, Nothing]) -> Response:
    """Describe the sandbox: free, isolated, with self-serve keys."""
    metadata = SandboxMetadata(
        sandbox=True, status="ok", environment=ENVIRONMENT, free_tier=True, self_serve_keys=True
    )
    return render_format(metadata, call.query.format)


async def show_sandbox_health(call: StoreRequest[FormatQuery, Nothing]) -> Response:
    """Check that a data set of the sandbox can be created."""
    await asyncio.to_thread(folders.check, Path(call.context.settings.data), call.context.settings.sandboxes)
    return render_format(SandboxHealth("ok", ENVIRONMENT), call.query.format)


async def show_sandbox_telemetry(call: StoreRequest[FormatQuery, Nothing]) -> Response:
    """Count the callers of the sandbox in the last 15 minutes."""
    active = await asyncio.to_thread(folders.used_within, Path(call.context.settings.data), ACTIVE_S)
    return render_format(SandboxTelemetry("ok", active), call.query.format)


def _routes(*, at_root: bool) -> tuple[Route[Store], ...]:
    metadata = route(
        "GET",
        "/sandbox",
        show_sandbox,
        query=FormatQuery,
        answers={200: SandboxMetadata},
        produces=FORMATS,
        documented=not at_root,
        at_root=at_root,
    )
    health = route(
        "GET",
        "/sandbox/api/v1/health",
        show_sandbox_health,
        query=FormatQuery,
        answers={200: SandboxHealth},
        refusals=(SandboxesFull,),
        produces=FORMATS,
        documented=not at_root,
        at_root=at_root,
    )
    telemetry = route(
        "GET",
        "/sandbox/api/v1/telemetry",
        show_sandbox_telemetry,
        query=FormatQuery,
        answers={200: SandboxTelemetry},
        produces=FORMATS,
        documented=not at_root,
        at_root=at_root,
    )
    return metadata, health, telemetry


ROUTES = (*_routes(at_root=False), *_routes(at_root=True))
