"""Answer a question, using only the rows that its filter matches. If the question changes the previous question ("and
on Windows?", "how many of those?"), the conditions of the previous question also apply.

The status is `answered` if every word with a meaning was used; `partial` if only some words were used, with the
unused words; `refused` if there is no answer, with the reason.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import filterfalse
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from countersign.kernel import clock
from countersign.kernel.database.port import Database
from countersign.store.ask.lexicon import DENIALS, LISTS, tokens_of, without_keys
from countersign.store.ask.parser import MULTIPLE, OF_OTHERS, QuestionParser, Reading
from countersign.store.ask.scope import SLOT_OF_FIELD, Item
from countersign.store.ask.word_lookup import recognize
from countersign.store.catalog import filter as filters
from countersign.store.catalog import filter_queries, names
from countersign.store.catalog.filter import (
    MAX_VALUES,
    Filter,
    Values,
    Where,
    conditions,
    describe,
    error_in,
    join_words,
    with_slots,
)
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
MIN_OF_LIST = 3
"""The weight of the conditions from which a list of products is useful whatever else the question says."""
MAX_UNUSED = 2
"""The number of unused words up to which an answer with few conditions is useful."""
_WEIGHTS = {"text": 0, "title": 0, "version": 0, "tag": 2, "org": 2, "license": 2, "product": 2}
"""The weights of conditions. Their sum decides whether an answer that ignores some words is useful."""
_EXCLUDING = frozenset(["kind", "platform", "access", "tag", "org", "license", "text"])
"""The conditions that can exclude a named product."""
_REVERSING = DENIALS | SLOT_OF_FIELD.keys() | OF_OTHERS | {"several times"}
"""Words that a list must not ignore: negations, choices, and fields that are requested instead of products."""
_ATTRIBUTES = frozenset(["how products are made and used", "requirements and sizes"])
"""What no catalog has, but what rarely decides alone which products are asked for."""
_SUGGESTED = (
    ("Which {} are there?", "How many {} are there?"),
    ("What is {}?", "What is the newest version of {}?", "What changed in {}?"),
    ("Compare {}",),
)
"""The suggested questions about no named product, about one, and about several."""
_VALUE = re.compile(r'"[^"]+"|[^\s";|&=!,]+')
_PAIR = re.compile(rf"(?:^|(?<=;))\s*(\w+)\s*(!?=)\s*((?:{_VALUE.pattern})(?:[|&](?:{_VALUE.pattern}))*)\s*(?:;|$)")
_DAY = re.compile(r"(?<=since=|until=)(\d{4}-\d\d-\d\d)(?=\s*(?:;|$))")
_FORMS = {"fields": {"answer": "fields"}, "by": {"answer": "breakdown"}}
"""The form of answer that each member of a stated filter requires."""
_GROUPS = (("since", "until", "when"), ("order", "limit"), ("find",))
"""The members of a filter that a follow-up question changes together."""


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
    filter, unused = reading.filter, tuple(dict.fromkeys([*reading.guards, *reading.unused]))
    reason = _reason(reading, unused)
    found = QuestionAnswer("") if reason else await of_filter(store, filter)
    is_missing = not any((reason, found.total, found.status == "refused"))
    if all((is_missing, reading.is_search, _is_list(filter), _weight(filter) >= MIN_OF_LIST)):
        # No text has the words that were searched for, but the other conditions can be met.
        reading.unused += [*filter.where.text.any, *filter.where.text.all]
        reading.filter, reading.is_search = with_slots(filter, text=Values()), False
        return await _outcome(store, reading, at)
    reason = reason or _contradiction(reading) * is_missing
    if all((not reason, found.total, _is_list(filter))):
        # The answer names the conditions that are stated beside the question.
        unused = tuple(dict.fromkeys([*unused, *reading.beside]))
    if all((not reason, any((not unused, found.status == "refused")))):
        return await _with_candidates(store, reading, found)
    suggestions = await _suggestions(store, filter, at)
    if found.total:
        text = f"Read as: {describe(filter)}. Not used: {quoted(unused)}. {found.text}"
        return replace(found, status="partial", text=text, confidence=PARTIAL, suggestions=suggestions, unused=unused)
    could = f"You could ask: {quoted(suggestions, '; ')}." if suggestions else CAN_ANSWER
    # The unused words may be the reason why no row matches.
    text = unable(f"{reason or _unknown(unused)}. {could}")
    return QuestionAnswer(text, status="refused", confidence=0.0, suggestions=suggestions, unused=unused)


async def of_filter(store: Store, filter: Filter) -> QuestionAnswer:
    """Return the answer to a filter."""
    return QuestionAnswer(*astuple(await answer_of(store, filter)))


def _unknown(unused: Sequence[str]) -> str:
    return f"I do not know what {quoted(unused)} means here"


def _reason(reading: Reading, unused: Sequence[str]) -> str:
    """Return the reason why there is no answer; empty if there is one."""
    filter = reading.filter
    weight = _weight(filter) * _is_list(filter)
    if reading.beyond and weight < MIN_OF_LIST + (not _ATTRIBUTES.issuperset(reading.beyond)):
        return f"the catalog has nothing about {join_words(list(dict.fromkeys(reading.beyond)), 'or')}"
    if reading.unknown and weight < MIN_OF_LIST:
        return f'the catalog has nothing called "{reading.unknown}"'
    if unused and not _is_useful(reading, unused):
        return _unknown(unused)
    is_empty = replace(with_slots(filter, version=Values()), limit=None) == Filter()
    return error_in(filter) or ("I do not understand what is asked for" if is_empty else "")


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


def _contradiction(reading: Reading) -> str:
    """Return the reason why no row matches a question that searches for words, or that is about one product by name and
    has another condition. Return an empty text for other questions."""
    filter = reading.filter
    if reading.is_search:
        return f"nothing in the catalog mentions {quoted((*filter.where.text.any, *filter.where.text.all))} and fits"
    excluding = [name for name, _ in conditions(filter) if name in _EXCLUDING]
    is_about_one = all((excluding, filter.answer == "fields", len(filter.where.product.any) == 1))
    return f"{filter.where.product.any[0]} does not match the {join_words(excluding)}" if is_about_one else ""


def _is_useful(reading: Reading, unused: Sequence[str]) -> bool:
    """Return whether an answer that ignores some words is useful: it must have two or more conditions, more conditions
    than unused words if these are many, and a form that can ignore words. An unused comparison or number can only make
    a list of products shorter, but it could reverse another answer."""
    filter, product, weight = reading.filter, reading.filter.where.product, _weight(reading.filter)
    is_in_rows = all((filter.answer == "list", filter.order == "title", filter.find == "releases" or not product))
    if not _REVERSING.isdisjoint([*reading.guards, *unused]) or (reading.guards and not is_in_rows):
        return False
    # The answer does not describe one product, if the question asks for something else about the product.
    is_of_one = all((len(product.any) == 1, filter.order == "title", filter.find == "products"))
    is_of_rows = all((filter.answer == "list", not is_of_one))
    is_of_fields = all((filter.answer == "fields", any((filter.fields, reading.is_about_text))))
    has_form = any((is_of_rows, is_of_fields, filter.answer == "compare"))
    max_unused = 2 * weight if all((_is_list(filter), weight >= MIN_OF_LIST)) else max(MAX_UNUSED, weight)
    return all((has_form, weight > 1, len(unused) <= max_unused))


def _weight(filter: Filter) -> int:
    """Return the weight of the conditions."""
    weights = [_WEIGHTS.get(name, 1) for name, _ in conditions(filter)]
    return sum(weights) + any((filter.since, filter.until)) + (filter.find != "products")


def _is_list(filter: Filter) -> bool:
    """Return whether the answer is a list of all products that meet the conditions."""
    form = (filter.find, filter.answer, filter.order)
    return form == ("products", "list", "title") and not filter.where.product


async def _suggestions(store: Store, filter: Filter, at: datetime) -> tuple[str, ...]:
    """Return related questions, each of which was tried and has an answer."""
    plain = Filter(where=filter.where, since=filter.since, until=filter.until, when=filter.when, channel=filter.channel)
    plain = with_slots(plain, version=Values())
    if not any(conditions(plain)):
        return ()
    titles = [each.detail.title for each in await facts(store.database, plain.where.product.any)]
    subject = join_words(titles) or describe(plain)
    tried: list[str] = []
    for question in [form.format(subject) for form in _SUGGESTED[min(len(titles), 2)]]:
        reading = await read(store.database, question, at)
        is_same = plain.where.product.any or reading.filter.where == plain.where
        if reading.is_whole and is_same and await filter_queries.has_rows(store.database, reading.filter):
            tried.append(question)
    return tuple(tried)


async def read(database: Database, question: str, now: datetime, base: Filter | None = None) -> Reading:
    """Interpret the question at the time `now`; `base` is the filter of the previous question."""
    question = question.replace("&amp;", "&")
    stated = await _stated_filter(database, question)
    if stated is not None and base is None:
        return Reading(stated)
    tokens = without_keys(tokens_of(question))
    recognition = await recognize(database, question, tokens, now)
    parser = QuestionParser(tokens, recognition)
    words = parser.words[parser.begin :]
    if base is None or not _is_continuation(words, recognition.items):
        return parser.reading()
    if all((len(base.where.product.any) == 1, {"it", "its"} & {*words})):
        base = with_slots(Filter(answer=base.answer, fields=base.fields), product=base.where.product)
    if not parser.of("product") and not LISTS["others"].isdisjoint(words):
        base = await _others(database, base, parser)
    elif not parser.of("product"):
        parser.values += [Item("product", slug, 0, 0) for slug in base.where.product.any]
    reading = parser.reading()
    reading.filter = _merged(base, reading.filter, words)
    return reading


async def _stated_filter(database: Database, text: str) -> Filter | None:
    """Return the filter that a text states as `kind=game|app; platform=linux&macos; channel!=beta; limit=5`; None if
    the text has another form, or if it contains a name that the catalog does not have."""
    members, where = _stated_members(_DAY.sub(r"\1T00:00:00Z", text))
    for name in where.keys() & {"product", "org"}:
        where[name] = {part: await _exact_names(database, name, values) for part, values in where[name].items()}
    members |= {"channel": where.pop("channel")} if "channel" in where else {}
    try:
        found = msgspec.convert({**members, "where": where}, Filter, strict=False)
    except msgspec.ValidationError:
        return None
    return None if found == Filter() or error_in(found) else found


def _stated_members(text: str) -> tuple[dict[str, Any], dict[str, dict[str, list[str]]]]:
    """Return the members and the conditions of a filter; both are empty if the text has another form."""
    members: dict[str, Any] = {}
    where: dict[str, dict[str, list[str]]] = {}
    pairs = [*_PAIR.finditer(text)]
    is_stated = sum(len(pair[0]) for pair in pairs) == len(text)
    for name, sign, stated in (pair.groups() for pair in pairs if is_stated):
        values = [value.strip('"') for value in _VALUE.findall(stated)]
        if name in filters.SLOTS:
            part = "not" if sign == "!=" else "all" if "&" in _VALUE.sub("", stated) else "any"
            where.setdefault(name, {})[part] = values
        else:
            members[name] = values if name == "fields" else values[0]
            members = _FORMS.get(name, {}) | members
    return members, where


async def _exact_names(database: Database, name: str, values: Sequence[str]) -> list[str]:
    """Return the slugs of the products or publishers; an empty text for a name that does not exist."""
    spans = [names.WordSpan(at, at + 1, value) for at, value in enumerate(values)]
    slugs = {found.start: found.value for found in await names.exact(database, spans) if found.slot == name}
    return [slugs.get(at, "") for at in range(len(values))]


async def _others(database: Database, base: Filter, parser: QuestionParser) -> Filter:
    """Return a filter for the products that the previous question neither named nor listed: "What else is there?", or
    those of the same publisher: "What else do they have?"."""
    known = await filter_queries.products(database, Filter(where=base.where, limit=MAX_VALUES))
    org, makers = base.where.org, [noun for noun in parser.nouns if noun.value == "publishers"]
    if all((known, not org, makers or not LISTS["making"].isdisjoint(parser.words))):
        org = Values(any=(await names.publisher_of(database, known[0].slug),))
    parser.guards = [*filterfalse(LISTS["others"].__contains__, parser.guards)]
    parser.nouns = [noun for noun in parser.nouns if noun not in makers]
    return Filter(where=Where(org=org, product=Values(none=tuple(product.slug for product in known))))


def _is_continuation(words: Sequence[str], items: Sequence[Item]) -> bool:
    """Return whether the question depends on the previous question. This is the case if the question refers back,
    begins like a continuation, or does not say what to search for."""
    is_fragment = not LISTS["onward openings"].isdisjoint(words[:1]) or words[1:2] == ["about"]
    refers_back = not LISTS["backward"].isdisjoint(words)
    return refers_back or is_fragment or {"kind", "product", "find", "org"}.isdisjoint(item.slot for item in items)


def _merged(base: Filter, query: Filter, words: Sequence[str]) -> Filter:
    """Return the base filter with the changes that the new question makes."""
    unchanged = Filter()
    changed = [group for group in _GROUPS if any(getattr(query, each) != getattr(unchanged, each) for each in group)]
    # "And on Windows?" asks for the same form of answer as the previous question, "and which version?" does not.
    is_about = any(("about" in words[1:2], all(("and" in words[:1], LISTS["asking"].isdisjoint(words[1:2])))))
    is_plain = all((query.answer in ("list", "exists", "fields"), not query.fields))
    has_same_form = any(("same" in words, all((is_about, is_plain, base.answer != "list"))))
    if not has_same_form and (query.answer != "list" or not LISTS["asking"].isdisjoint(words[:3])):
        changed.append(("answer", "fields", "by"))
    slots = _merged_slots(base, query, is_narrowed=not LISTS["named before"].isdisjoint(words))
    return replace(with_slots(base, **slots), **{name: getattr(query, name) for group in changed for name in group})


def _merged_slots(base: Filter, query: Filter, *, is_narrowed: bool) -> dict[str, Values]:
    """Return the new conditions. "How many of those run on Linux too?" adds a value (`is_narrowed`)."""
    slots = dict(conditions(query))
    for name in MULTIPLE & slots.keys() if is_narrowed else ():
        before, values = filters.slot(base, name), slots[name]
        if len(before.any) == 1 and before.any != values.any:
            slots[name] = Values(all=(*before.any, *values.any, *values.all))
    return slots
