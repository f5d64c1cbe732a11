"""ROOT/llms.txt: the documents and endpoints there are, for a language model to read (llmstxt.org)."""

from collections.abc import Sequence
from functools import lru_cache

from countersign.distribution.context import PREFIX, Store
from countersign.distribution.documents import openapi, serving
from countersign.distribution.documents.operations import address_of, feature_of
from countersign.distribution.documents.wiki import shared_words
from countersign.distribution.identity.callers import Request
from countersign.kernel.http.answer import Answer
from countersign.kernel.http.route import Nothing, Route, route

PATH = "/llms.txt"
_PLAIN = "text/plain; charset=utf-8"
_MEANINGS = {
    "openapi": "every endpoint with parameters, schemas, statuses and examples (OpenAPI 3.1)",
    "wiki": "the manual as JSON: sections, endpoints, error codes, examples",
    "agents": "how an agent registers, is claimed by a person, and gets a token",
    "api-catalog": "links to all of these (RFC 9727)",
}


def routes(described: Sequence[Route[Store]]) -> tuple[Route[Store], ...]:
    """The route of the overview of these routes; the sequence may still grow."""

    @lru_cache(maxsize=4)
    def encoded(root_url: str, name: str) -> bytes:
        return overview(described, root_url, name).encode()

    async def show_overview(call: Request[Nothing, Nothing]) -> Answer:
        """Give an overview for language models: the documents and endpoints there are."""
        return serving.answer(encoded(call.context.root_url, call.context.settings.resource_name), _PLAIN)

    produces = (_PLAIN, "text/plain", "text/markdown")
    return (route("GET", PATH, show_overview, answers={200: str}, produces=produces, **serving.OPTIONS),)


def overview(described: Sequence[Route[Store]], root_url: str, name: str) -> str:
    """The overview, in Markdown."""
    lines = [
        f"# {name}",
        "",
        "> A store of games, apps and tools: catalog, releases, a library per person, codes, jobs on builds. "
        f"The API is at {root_url}{PREFIX}; what needs no credential can be tried at once.",
        "",
        *(f"- {subject}: {text}" for subject, text in shared_words(root_url).items()),
        "",
        "## Documents",
        "",
        *(f"- [{each}]({root_url}{serving.DOCUMENTS[each]}): {meaning}" for each, meaning in _MEANINGS.items()),
    ]
    for feature in dict.fromkeys(feature_of(each) for each in described):
        lines += ["", f"## {feature}: {openapi.about(feature)}", ""]
        lines += [_line(each) for each in described if feature_of(each) == feature]
    return "\n".join(lines) + "\n"


def _line(each: Route[Store]) -> str:
    needs = f" (needs {each.scope})" if each.scope else " (needs a token)" if each.signed_in else ""
    return f"- `{each.method} {address_of(each)}`{needs}: {each.summary}"
