"""NLWeb's forms of an answer: results as schema.org objects, the `_meta` form, its events (specification 0.54)."""

from typing import Any

import msgspec

from countersign.distribution.ask import queries
from countersign.distribution.ask.answers import Answered, Source
from countersign.distribution.ask.queries import Facts
from countersign.distribution.ask.schemas import AnswerMeta, AskAnswer, NlwebAnswer, Result
from countersign.distribution.context import Store

MOST_RESULTS = 20
_TYPES = {"game": "VideoGame", "app": "SoftwareApplication", "tool": "SoftwareApplication"}


async def results(store: Store, answered: Answered) -> list[Result]:
    """The first twenty products and releases an answer is from."""
    found: list[Result] = []
    for place, source in enumerate(answered.sources[:MOST_RESULTS]):
        facts = await queries.facts(store.database, source.product)
        if facts is not None:
            found.append(_result(store, facts, source, 100 - place))
    return found


def _result(store: Store, facts: Facts, source: Source, score: int) -> Result:
    detail = facts.detail
    described: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": _TYPES[detail.kind],
        "name": detail.title,
        "url": f"{store.base_url}/products/{detail.slug}",
        "operatingSystem": ", ".join(detail.platforms),
        "publisher": {"@type": "Organization", "name": facts.publisher},
        "keywords": ", ".join(detail.tags),
        "isAccessibleForFree": detail.access == "free",
    }
    newest = detail.channels[0] if detail.channels else None
    if source.release is not None:
        described["softwareVersion"] = source.release
    elif newest is not None:
        described |= {"softwareVersion": newest.version, "datePublished": newest.published_at}
    if detail.description:
        described["description"] = detail.description
    if detail.license:
        described["license"] = detail.license
    name = detail.title if source.release is None else f"{detail.title} {source.release}"
    return Result(source.url, name, store.root_url, score, detail.description or "", described)


def nested(answered: Answered, answer: AskAnswer) -> NlwebAnswer:
    """The answer in the `_meta` form: an elicitation where it asks back, a failure where it cannot tell."""
    if answered.candidates:
        question = {"id": "1", "text": answered.text, "type": "single_select", "options": [*answered.candidates]}
        asked = {"text": answered.text, "questions": [question]}
        return NlwebAnswer(meta=AnswerMeta("elicitation"), query_id=answer.query_id, elicitation=asked)
    if answered.kind == "refused":
        error = {"code": "NO_RESULTS", "message": answered.text}
        return NlwebAnswer(meta=AnswerMeta("failure"), query_id=answer.query_id, error=error)
    return NlwebAnswer(
        meta=AnswerMeta("answer"), query_id=answer.query_id, answer=answer.answer, results=grounded(answer.results)
    )


def grounded(found: list[Result]) -> list[dict[str, Any]]:
    """Results as the `_meta` form has them: schema.org members at the top, and where they are from."""
    return [
        {**msgspec.to_builtins(each.schema_object), "name": each.name, "grounding": {"source_urls": [each.url]}}
        for each in found
    ]


def not_supported(query_id: str) -> NlwebAnswer:
    """The failure of a mode that this service does not have."""
    error = {"code": "NOT_SUPPORTED", "message": "mode=generate needs a model, and none is configured here"}
    return NlwebAnswer(meta=AnswerMeta("failure"), query_id=query_id, error=error)
