"""An agent that knows only a base address and uses what it reads there: links, descriptions, responses.

It knows the standards (HTTP, HTML, OpenAPI, the terms of OAuth), but no address, scope or member of the store.
"""

import re
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote, urljoin

import httpx


@dataclass(frozen=True)
class DescribedOperation:
    """An operation of a section of the API description, with its full address."""

    method: str
    address: str
    described: dict[str, Any]

    @property
    def example(self) -> Any:
        """Return the example body in the description."""
        return self.described["requestBody"]["content"]["application/json"]["example"]

    def parameter(self, value: str) -> str:
        """Return the name of the query parameter whose enumeration contains this value."""
        return next(
            parameter["name"]
            for parameter in self.described["parameters"]
            if parameter["in"] == "query" and value in parameter["schema"].get("enum", ())
        )

    def parameter_of_form(self, form: str) -> str:
        """Return the name of the query parameter with this format."""
        return next(
            parameter["name"] for parameter in self.described["parameters"] if parameter["schema"].get("format") == form
        )

    def header(self, description_part: str) -> str:
        """Return the name of the request header whose description contains these words."""
        return next(
            parameter["name"]
            for parameter in self.described["parameters"]
            if parameter["in"] == "header" and description_part in parameter["description"]
        )


@dataclass(frozen=True)
class DescriptionSection:
    """A section of the API description."""

    document: dict[str, Any]

    def operation(self, method: str, *searched_words: str, below: str = "") -> DescribedOperation:
        """Return the operation with this method whose texts contain all of these words. `below` is the address of the
        API, if it differs from the description."""
        base = below or self.document["servers"][0]["url"]
        for path, item in self.document["paths"].items():
            description = item.get(method.lower(), {"description": ""})["description"].lower()
            if all(word.lower() in description for word in searched_words):
                return DescribedOperation(method, base + path, item[method.lower()])
        raise AssertionError(f"no {method} says {searched_words}")

    @property
    def token_address(self) -> str:
        """Return the address of the token endpoint."""
        schemes = self.document["components"]["securitySchemes"]
        return schemes["OAuth2"]["flows"]["clientCredentials"]["tokenUrl"]


@dataclass
class OverviewAgent:
    """Sends requests and counts them. `overview` is the overview for language models that it has read."""

    http: httpx.AsyncClient
    root: str
    overview: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    async def send(self, method: str, address: str, **options: Any) -> httpx.Response:
        """Send a request with the agent's credential to an address that the agent has read."""
        self.requests.append(f"{method} {address}")
        headers = {**self.headers, **options.pop("headers", {})}
        return await self.http.request(method, urljoin(self.root + "/", address), headers=headers, **options)

    async def run_operation(self, operation: DescribedOperation, *path: str, **options: Any) -> httpx.Response:
        """Run the operation with these values for its path parameters."""
        address = operation.address
        for value in path:
            address = re.sub(r"\{\w+\}", quote(value, safe=""), address, count=1)
        return await self.send(operation.method, address, **options)

    async def begin(self) -> str:
        """Read the base address, follow the link for language models, and read the overview. This takes two
        requests."""
        page = await self.send("GET", self.root)
        link = re.search(r'href="([^"]+)"[^>]*>[^<]*language models', page.text)
        assert link is not None, page.text
        self.overview = (await self.send("GET", link[1])).text
        return self.overview

    async def section(self, name: str) -> DescriptionSection:
        """Return one section of the API description, at the address that the overview names."""
        section_address = re.search(r"(\S+)SECTION: [^\n]*\b" + name + r"\b", self.overview)
        assert section_address is not None, f"{name} is no section of the overview"
        answer = await self.send("GET", section_address[1] + name)
        return DescriptionSection(cast("dict[str, Any]", answer.json()))

    def recipe(self, title_part: str) -> str:
        """Return the recipe of the overview whose title contains these words, and the addresses at its beginning."""
        match = re.search(
            r"^\d\. [^\n]*" + title_part + r"[^\n]*\n```sh\n(.*?)```", self.overview, re.MULTILINE | re.DOTALL
        )
        assert match is not None, title_part
        names = dict(re.findall(r"\b([RB])=([^;\n]+)", self.overview))
        text = match[1].replace("$B", names["B"]).replace("$R", names["R"])
        return re.sub(r"\$\w/", names["R"] + "/", text)

    async def key(self, tier: str) -> dict[str, str]:
        """Create a key with the recipe of this tier, and return its header."""
        link = re.search(r"(\S+/keys\?tier=)\w+", self.overview)
        assert link is not None
        address = link[1].strip('"').replace("$(curl", "").strip()
        address = address.replace("$R", dict(re.findall(r"\b(R)=([^;\n]+)", self.overview))["R"])
        answer = await self.send("GET", address + tier)
        name = re.search(r'-H "?([\w-]+): ?\$K', self.overview)
        assert name is not None
        return {name[1]: next(value for value in answer.json().values() if str(value).startswith("csk_"))}
