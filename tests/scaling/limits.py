"""Writes docs/reference/limits.md from the measured declarations: `python -m tests.scaling.limits`."""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from countersign.records import app
from tests.records.office import ROOT_URL, furnish, settings
from tests.scaling import endpoints
from tests.scaling.endpoints import AcceptedText
from tests.scaling.parsers import PARSERS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "limits.md"
HEAD = """<!-- Written by `python -m tests.scaling.limits`; change the declarations instead. -->

# Limits of what is read

Every parser of input from outside takes time in proportion to the size of the input, up to the limit on this page. A
test measures each parser with a quarter, half and all of its worst input, and fails if twice the input takes more than
2.6 times as long. A request has a head of at most 64 KiB with 128 headers, and a body of at most 1 MiB (the store) or
8 MiB (records), unless a line says otherwise; uploads have their own limits. A parameter or member without a limit of
its own has the limit of the request.

A question to `ask` has at most 2,000 characters, of which the first 400 words are read. At most 300 groups of words are
looked up as names, and at most 12 unknown words. Reading takes less than 20 ms of CPU time for any text; a test
measures that too.
"""


def page(commands: list[AcceptedText]) -> str:
    """Return the page, with the texts that commands of records accept."""
    parsers = [f"| {name} | {parser.source} | {parser.bound} |" for name, parser in PARSERS.items()]
    return "\n".join(
        [
            HEAD,
            "## Parsers\n\n| Parser | Reads | Limit |\n| --- | --- | --- |",
            *parsers,
            "\n## Texts that the store accepts\n\n| Endpoint | Text | Characters |\n| --- | --- | --- |",
            *map(_line, endpoints.texts()),
            "\n## Texts that records accept\n\n| Command | Text | Characters |\n| --- | --- | --- |",
            *map(_line, commands),
            "",
        ]
    )


def _line(text: AcceptedText) -> str:
    limit = f"{text.limit:,}" if text.is_told else "as the request"
    return f"| `{text.method} {text.path}` | `{text.place}` | {limit} |"


async def _commands() -> list[AcceptedText]:
    with TemporaryDirectory() as folder:
        office_settings = settings(folder)
        tokens = await furnish(office_settings)
        async with app.open_records(office_settings, ROOT_URL, is_loopback=True) as service:
            transport = httpx.ASGITransport(app.create(service))
            async with httpx.AsyncClient(transport=transport, base_url=ROOT_URL) as client:
                headers = {"Authorization": f"Bearer {tokens['root']}"}
                document = (await client.get("/api/openapi.json", headers=headers)).json()
    return endpoints.commands(document)


if __name__ == "__main__":
    PAGE.write_text(page(asyncio.run(_commands())))
    sys.stdout.write(f"{PAGE.name} is written\n")
