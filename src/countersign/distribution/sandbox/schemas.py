"""What is told about the sandbox."""

import msgspec


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
