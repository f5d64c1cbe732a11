"""A question to its answer: read, run, and answered with what was not understood of it.

Three outcomes: `answered`, where every word that has a meaning was used; `partial`, the rows of what was understood,
with the words that were not; `refused`, with the reason and questions that have answers.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from countersign.distribution.ask2 import answering
from countersign.distribution.ask2.answering import Answered, joined
from countersign.distribution.ask2.filter import Filter, Values, conditions
from countersign.distribution.ask2.reading import Reading, read
from countersign.distribution.context import Store
from countersign.kernel.clock import Instant

MAX_BEFORE = 5
"""Questions before this one that are read."""
MAX_SUGGESTIONS = 3
BY_MODEL = 0.6
CAN_ANSWER = (
    "I answer from the catalog: which products and releases there are, or how many, by kind, platform, channel, tag, "
    "license and date; what a product is, who publishes it and what changed."
)
_PARTIAL_FORMS = frozenset(["list", "fields"])


async def answer(
    store: Store, question: str, now: Instant, previous: Sequence[str] = (), *, with_model: bool = False
) -> Answered:
    """The answer to the question as of `now`, out of what anybody may see in the catalog. `previous` are the questions
    before it, the oldest first; `with_model`: the configured model reads it whatever the rules understand."""
    at = datetime.fromtimestamp(now / 1_000_000, UTC)
    base: Filter | None = None
    for earlier in previous[-MAX_BEFORE:]:
        base = (await read(store.database, earlier, at, base)).filter
    reading = await read(store.database, question, at, base)
    found = await outcome(store, reading)
    if not store.settings.ask_model_url or (found.status == "answered" and not with_model):
        return found
    # Imported here: few have a model, and what speaks to it makes every start a tenth of a second longer.
    from countersign.distribution.ask2 import model

    filter = await model.filter_of(store.settings, question, at)
    return found if filter is None else replace(await answering.run(store, filter), confidence=BY_MODEL)


async def outcome(store: Store, reading: Reading) -> Answered:
    """The answer to what was read, or why there is none."""
    filter = reading.filter
    unused = [*reading.guards, *reading.unused]
    if reading.beyond:
        kinds = joined(list(dict.fromkeys(reading.beyond)), "or")
        return await _refused(store, f"the catalog has no {kinds}", filter)
    if reading.unknown:
        return await _refused(store, f'the catalog has nothing called "{reading.unknown}"', filter)
    is_empty = not any(conditions(filter.where)) and filter == Filter(answer=filter.answer, find=filter.find)
    if unused and (is_empty or reading.guards or filter.answer not in _PARTIAL_FORMS):
        return await _refused(store, f"I do not know what {_quoted(unused)} means here", filter)
    if filter == Filter():
        return await _refused(store, "I do not understand what is asked for", filter)
    found = await answering.run(store, filter)
    if unused:
        read_as = f"Read as: {described(filter)}. Not used: {_quoted(unused)}."
        suggestions = await _suggestions(store, filter)
        return replace(
            found, status="partial", text=f"{read_as} {found.text}", confidence=0.5, suggestions=suggestions
        )
    if not reading.corrected:
        return found
    taken = [f'"{each.written}" as {each.title}' for each in reading.corrected if each.others]
    others = [other for each in reading.corrected for other in each.others]
    also = f" (I read {joined(taken)}; {joined(others)} would fit too.)" if others else ""
    return replace(found, confidence=0.8, text=found.text + also)


async def _refused(store: Store, reason: str, filter: Filter) -> Answered:
    suggestions = await _suggestions(store, filter)
    could = f" You could ask: {_quoted(suggestions, '; ')}." if suggestions else f" {CAN_ANSWER}"
    return Answered("refused", f"I cannot tell: {reason}.{could}", confidence=0.0, suggestions=suggestions)


async def _suggestions(store: Store, filter: Filter) -> tuple[str, ...]:
    """Questions about what was understood, each of which has an answer. Nothing is left out of a denial."""
    where = filter.where
    if not any(conditions(where)):
        return ()
    plain = Filter(where=replace(where, version=Values()), since=filter.since, until=filter.until, when=filter.when)
    if not await answering.total(store.database, plain):
        return ()
    names = await answering.titles(store.database, where.product.any)
    if names:
        name = joined(names)
        asked = (f"What is {name}?", f"What is the newest version of {name}?", f"What changed in {name}?")
        return asked[:MAX_SUGGESTIONS] if len(names) == 1 else (f"Compare {name}",)
    text = described(plain)
    return (f"Which {text} are there?", f"How many {text} are there?")


def described(filter: Filter) -> str:
    """The filter in words that mean the same when they are asked."""
    where = filter.where
    nouns = {"game": "games", "app": "apps", "tool": "tools"}
    noun = joined([nouns[kind] for kind in where.kind.any], "or") or filter.find
    parts = [*where.access.any, *(f"{tag}" for tag in where.tag.any[:1])]
    text = " ".join([*parts, noun])
    for slot, values in conditions(where):
        text += _condition(slot, values)
    if filter.since or filter.until:
        released = {"none": "with no release", "first": "first released", "last": "last released"}
        text += f" {released.get(filter.when, 'released')}"
        text += f" since {filter.since[:10]}" if filter.since else ""
        text += f" before {filter.until[:10]}" if filter.until else ""
    return text


_PHRASES = {"platform": "on", "channel": "in", "tag": "tagged", "org": "by", "license": "licensed", "title": "titled",
    "text": "about", "product": "called", "version": "in version"}  # fmt: skip


def _condition(slot: str, values: Values) -> str:
    phrase = _PHRASES.get(slot, "")
    names = [answering.PLATFORM_NAMES.get(value, value) for value in (*values.all, *values.any)]
    skipped = slot in ("kind", "access") or (slot == "tag" and len(values.any) == 1)
    text = "" if skipped or not names else f" {phrase} {joined(names, 'and' if values.all else 'or')}"
    denied = [answering.PLATFORM_NAMES.get(value, value) for value in values.none]
    return text + (f" not {phrase} {joined(denied, 'or')}" if denied else "")


def _quoted(texts: Sequence[str], separator: str = "") -> str:
    quoted = [f'"{text}"' for text in dict.fromkeys(texts)]
    return separator.join(quoted) if separator else joined(quoted, "or")
