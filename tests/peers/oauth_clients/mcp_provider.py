"""The providers of the official Python SDK of MCP, used to authorise an HTTP client; each starts after a 401."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from conversing import read_input, send_person_to, tell
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken


class MemoryStorage:
    """The provider's storage: its client and its token."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        self.client = client
        self.token: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Return the token."""
        return self.token

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store the token."""
        self.token = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the client."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the client."""
        self.client = client_info


def by_credentials(client_settings: dict[str, Any]) -> tuple[httpx2.Auth, MemoryStorage]:
    """Return the client acting for itself."""
    storage = MemoryStorage()
    return ClientCredentialsOAuthProvider(
        client_settings["library"],
        storage,
        client_settings["client_id"],
        client_settings["client_secret"],
        token_endpoint_auth_method=client_settings["way"],
        issuer=client_settings["root"],
    ), storage


def by_code(client_settings: dict[str, Any]) -> tuple[httpx2.Auth, MemoryStorage]:
    """Return the client that acts for a person, with a code. Without credentials, it first registers itself."""
    metadata: dict[str, Any] = {
        "redirect_uris": [client_settings["redirect_uri"]],
        "grant_types": ["authorization_code"],
        "token_endpoint_auth_method": client_settings["way"],
    }
    storage = MemoryStorage()
    if client_settings["grant"] == "code":
        credentials = {name: client_settings[name] for name in ("client_id", "client_secret")}
        storage = MemoryStorage(OAuthClientInformationFull(**metadata, **credentials, issuer=client_settings["root"]))
    answers: list[str] = []

    async def open_page(address: str) -> None:
        answers.append(send_person_to(address))

    async def come_back() -> AuthorizationCodeResult:
        parameters = {name: values[0] for name, values in parse_qs(urlsplit(answers.pop()).query).items()}
        return AuthorizationCodeResult(
            code=parameters["code"], state=parameters.get("state"), iss=parameters.get("iss")
        )

    return OAuthClientProvider(
        client_settings["library"], OAuthClientMetadata(**metadata), storage, open_page, come_back
    ), storage


def by_assertion(client_settings: dict[str, Any]) -> tuple[httpx2.Auth, MemoryStorage]:
    """Return the client acting for a person whom an identity provider asserts."""
    storage = MemoryStorage()

    async def assertion(audience: str, resource: str) -> str:
        if (audience, resource) != (client_settings["root"], client_settings["library"]):
            raise LookupError(f"there is no assertion for {audience} and {resource}")
        return client_settings["assertion"]

    return IdentityAssertionOAuthProvider(
        client_settings["library"],
        storage,
        client_settings["client_id"],
        client_settings["client_secret"],
        client_settings["root"],
        assertion,
        token_endpoint_auth_method=client_settings["way"],
    ), storage


WAYS = {"credentials": by_credentials, "code": by_code, "registration": by_code, "assertion": by_assertion}


async def main(client_settings: dict[str, Any]) -> None:
    """Request the library without a token, and let the provider get a token."""
    provider, storage = WAYS[client_settings["grant"]](client_settings)
    requests: list[str] = []

    async def note(request: httpx2.Request) -> None:
        requests.append(f"{request.method} {request.url.path}")

    async with httpx2.AsyncClient(auth=provider, event_hooks={"request": [note]}) as http:
        answer = await http.get(client_settings["library"])
        assert storage.token is not None
        results = {"status": answer.status_code, "token": storage.token.model_dump(exclude_none=True)}
        if client_settings.get("revoke") is not None:
            # The script reports this itself, because the SDK cannot revoke tokens.
            await http.post(client_settings["revoke"], data={"token": storage.token.access_token}, auth=None)
            results["after"] = (await http.get(client_settings["library"])).status_code
    tell(requests=requests, **results)


asyncio.run(main(read_input()))
