"""Answer a question, using only the rows that its filter matches.

The status is `answered` if every word with a meaning was used; `partial` if only some words were used, with the
unused words; `refused` if there is no answer, with the reason.
"""

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import astuple, replace

from countersign.kernel import clock
from countersign.store.ask.lexicon import DENIALS, LISTS
from countersign.store.ask.parser import OF_OTHERS, Reading, read
from countersign.store.ask.scope import SLOT_OF_FIELD
from countersign.store.catalog import filter_queries
from countersign.store.catalog.filter import Filter, Values, conditions, describe, error_in, join_words, with_slots
from countersign.store.catalog.filter_answers import FilterAnswer, answer_of, quoted, unable
from countersign.store.catalog.filter_queries import facts
from countersign.store.context import Store

MAX_BEFORE = 5
"""Maximum number of previous questions that are interpreted."""
MAX_SUGGESTIONS = 3
CORRECTED, BY_MODEL, PARTIAL = 0.8, 0.6, 0.5
"""The confidence of an answer with a corrected name, of a model's answer, and of an answer that ignores some words."""
CAN_ANSWER = (
    "I answer from the catalog: which products and releases there are, or how many, by kind, platform, channel, tag, "
    "license and date; what a product is, who publishes it and what changed."
)
MAX_UNUSED = 2
"""The number of unused words up to which an answer with few conditions is useful."""
_WEIGHTS = {"text": 0, "title": 0, "version": 0, "tag": 2, "org": 2, "license": 2, "product": 2}
"""The weights of conditions. Their sum decides whether an answer that ignores some words is useful."""
_EXCLUDING = frozenset(["kind", "platform", "access", "tag", "org", "license", "text"])
"""The conditions that can exclude a named product."""
_REVERSING = frozenset(["only", "or", "first", *LISTS["ends of support"], *DENIALS, *SLOT_OF_FIELD, *OF_OTHERS])
"""Words that a list must not ignore: negations, choices, and fields that are requested instead of products."""


class QuestionAnswer(FilterAnswer, frozen=True):
    """The answer to a question. `candidates` are the titles that the question may refer to. `unused` are the words of
    the question that the answer ignores."""

    confidence: float = 1.0
    suggestions: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()


async def answer(
    store: Store, question: str, now: clock.Instant, previous: Sequence[str] = (), *, with_model: bool = False
) -> QuestionAnswer:
    """Answer the question as of `now` from public data of the catalog. `previous` are the previous questions, the
    oldest first; `with_model` sends the question to the configured model even if the rules understand it."""
    at = datetime.fromtimestamp(now / 1_000_000, UTC)
    base: Filter | None = None
    for earlier in previous[-MAX_BEFORE:]:
        base = (await read(store.database, earlier, at, base)).filter
    reading = await read(store.database, question, at, base)
    found = await _outcome(store, reading, at)
    is_settled = reading.beyond or (found.status == "answered" and not with_model)
    if is_settled or not store.settings.ask_model_url:
        return found
    # Import the module only here: few installations have a model, and the import would make every start 0.1 s slower.
    from countersign.store.ask import model

    filter = await model.filter_of(store, question, at)
    return found if filter is None else replace(await of_filter(store, filter), confidence=BY_MODEL)


async def _outcome(store: Store, reading: Reading, at: datetime) -> QuestionAnswer:
    """Return the answer to the interpreted question, with the unused words, or the reason why there is no answer."""
    reading = await _without_foreign_tag(store, reading)
    filter, unused = reading.filter, tuple(dict.fromkeys([*reading.guards, *reading.unused]))
    reason = _reason(reading, unused)
    found = QuestionAnswer("") if reason else await of_filter(store, filter)
    reason = reason or _contradiction(reading, found)
    if not reason and (not unused or found.status == "refused"):
        return await _with_candidates(store, reading, found)
    suggestions = await _suggestions(store, filter, at)
    if found.total:
        text = f"Read as: {describe(filter)}. Not used: {quoted(unused)}. {found.text}"
        return replace(found, status="partial", text=text, confidence=PARTIAL, suggestions=suggestions, unused=unused)
    # The unused words may be the reason why no row matches.
    reason = reason or _unknown_reason(unused)
    could = f"You could ask: {quoted(suggestions, '; ')}." if suggestions else CAN_ANSWER
    return replace(_refused(f"{reason}. {could}"), suggestions=suggestions, unused=unused)


async def _without_foreign_tag(store: Store, reading: Reading) -> Reading:
    """Return the reading without the tag if the question is about one product by name that does not have the tag, as in
    "For a photo caption: what is Keyturn?" and "Does the demo of Star Ledger run on macOS?"."""
    filter, tags = reading.filter, reading.filter.where.tag
    required = replace(tags, none=())
    has_others = not {name for name, _ in conditions(filter)} <= {"product", "tag", "kind"}
    if required == Values() or not (_is_about_one(filter) or (has_others and filter.answer == "exists")):
        return reading
    tagged = with_slots(Filter(), product=filter.where.product, tag=required)
    if await filter_queries.has_rows(store.database, tagged):
        return reading
    unused = [*reading.unused, *tags.any, *tags.all]
    return dataclasses.replace(reading, filter=with_slots(filter, tag=Values(none=tags.none)), unused=unused)


async def of_filter(store: Store, filter: Filter) -> QuestionAnswer:
    """Return the answer to a filter."""
    return QuestionAnswer(*astuple(await answer_of(store, filter)))


def _refused(reason: str) -> QuestionAnswer:
    return QuestionAnswer(unable(reason), status="refused", confidence=0.0)


def _unknown_reason(words: Sequence[str]) -> str:
    return f"I do not know what {quoted(words)} means here"


def _reason(reading: Reading, unused: Sequence[str]) -> str:
    """Return the reason why there is no answer; empty if there is one."""
    if reading.beyond:
        return f"the catalog has nothing about {join_words(list(dict.fromkeys(reading.beyond)), 'or')}"
    if reading.unknown:
        return f'the catalog has nothing called "{reading.unknown}"'
    if unused and (_may_be_reversed(reading) or not _is_useful(reading, unused)):
        return _unknown_reason(unused)
    is_empty = replace(with_slots(reading.filter, version=Values()), limit=None) == Filter()
    return error_in(reading.filter) or ("I do not understand what is asked for" if is_empty else "")


async def _with_candidates(store: Store, reading: Reading, found: QuestionAnswer) -> QuestionAnswer:
    """Return the answer, with the titles that the question may refer to if there are several."""
    if reading.is_about_text and found.total > 1 and [name for name, _ in conditions(reading.filter)] == ["text"]:
        # "What is Slow?"
        near = await facts(store.database, [source.product for source in found.sources[:MAX_SUGGESTIONS]])
        return replace(found, confidence=CORRECTED, candidates=tuple(each.detail.title for each in near))
    return _corrected(reading, found) if reading.corrected else found


def _corrected(reading: Reading, found: QuestionAnswer) -> QuestionAnswer:
    """Return the answer, with the name that was assumed and the other matching names."""
    several = [each for each in reading.corrected if each.others]
    text = found.text
    if several:
        readings = join_words([f'"{each.written}" as {each.title}' for each in several])
        others = join_words([other for each in several for other in each.others])
        text += f" (I read {readings}; {others} would fit too.)"
    candidates = tuple(title for each in several for title in (each.title, *each.others))
    return replace(found, confidence=CORRECTED, text=text, candidates=candidates)


def _is_about_one(filter: Filter) -> bool:
    return filter.answer == "fields" and len(filter.where.product.any) == 1


def _contradiction(reading: Reading, found: QuestionAnswer) -> str:
    """Return the reason why no row matches a question that searches for words, or that is about one product by name and
    has another condition. Return an empty text for other questions and answers."""
    filter = reading.filter
    if found.total or found.status == "refused":
        return ""
    if reading.is_search:
        return f"nothing in the catalog mentions {quoted((*filter.where.text.any, *filter.where.text.all))} and fits"
    excluding = [name for name, _ in conditions(filter) if name in _EXCLUDING and _is_about_one(filter)]
    return f"{filter.where.product.any[0]} does not match the {join_words(excluding)}" if excluding else ""


def _may_be_reversed(reading: Reading) -> bool:
    """Return whether the unused words could reverse the answer. In a list of products, an unused comparison or number
    could only make the list shorter."""
    filter = reading.filter
    is_list = filter.answer == "list" and filter.find == "products" and not filter.where.product
    return bool(reading.guards) and (not is_list or not _REVERSING.isdisjoint(reading.guards))


def _is_useful(reading: Reading, unused: Sequence[str]) -> bool:
    """Return whether an answer that ignores some words is useful. The question must have two or more conditions, and
    more conditions than unused words if these are many."""
    filter = reading.filter
    weights = [_WEIGHTS.get(name, 1) for name, _ in conditions(filter)]
    weight = sum(weights) + bool(filter.since or filter.until) + (filter.find != "products")
    return weight > 1 and len(unused) <= max(MAX_UNUSED, weight) and _can_be_partial(reading)


def _can_be_partial(reading: Reading) -> bool:
    """Return whether the answer has a form that can ignore words: it does not describe one product, if the question
    asks for something else about the product."""
    filter = reading.filter
    is_list = filter.answer == "list" and (len(filter.where.product.any) != 1 or filter.order in ("newest", "oldest"))
    is_of_products = filter.answer == "fields" and bool(filter.fields or reading.is_about_text)
    return is_list or is_of_products or filter.answer == "compare"


async def _suggestions(store: Store, filter: Filter, at: datetime) -> tuple[str, ...]:
    """Return related questions, each of which was tried and has an answer."""
    plain = Filter(where=filter.where, since=filter.since, until=filter.until, when=filter.when, channel=filter.channel)
    plain = with_slots(plain, version=Values())
    if not any(conditions(plain)):
        return ()
    tried: list[str] = []
    for question in await _questions(store, plain):
        reading = await read(store.database, question, at)
        is_same = plain.where.product.any or reading.filter.where == plain.where
        if reading.is_whole and is_same and await filter_queries.has_rows(store.database, reading.filter):
            tried.append(question)
    return tuple(tried)


async def _questions(store: Store, plain: Filter) -> list[str]:
    titles = [each.detail.title for each in await facts(store.database, plain.where.product.any)]
    if not titles:
        return [f"Which {describe(plain)} are there?", f"How many {describe(plain)} are there?"]
    if len(titles) > 1:
        return [f"Compare {join_words(titles)}"]
    return [f"What is {titles[0]}?", f"What is the newest version of {titles[0]}?", f"What changed in {titles[0]}?"]
