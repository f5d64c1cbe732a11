"""A question answered: `answered(store, question, now)` reads it, runs the typed query and says what was found."""

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial

from countersign.distribution.ask import budget, extreme_replies, phrases, replies, truth_replies, version_replies
from countersign.distribution.ask import particular_replies as particular
from countersign.distribution.ask.answers import Answered, Source
from countersign.distribution.ask.beyond import beyond
from countersign.distribution.ask.grammar import Understood, understand, understand_fronted
from countersign.distribution.ask.guesses import guessed
from countersign.distribution.ask.names import Names, names
from countersign.distribution.ask.offered import offered
from countersign.distribution.ask.particular_replies import UnknownProduct
from countersign.distribution.ask.plainer import plainer
from countersign.distribution.ask.query import (
    AllAre,
    Beats,
    Count,
    CountOf,
    Exists,
    IsNewer,
    IsNewest,
    Most,
    NewestIs,
    NewestOfEach,
    Noting,
    Precedes,
    Products,
    Publishers,
    Query,
    Releases,
    Same,
    Tells,
)
from countersign.distribution.ask.replies import Reply
from countersign.distribution.ask.resolving import Meant, names_it, resolved, unresolved
from countersign.distribution.ask.respelt import respelt
from countersign.distribution.ask.restated import held_names, restated
from countersign.distribution.ask.tokens import Token, TooLong, span, tokens
from countersign.distribution.ask.told import Mentioning
from countersign.distribution.ask.unread import unread
from countersign.distribution.context import Store
from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Database

MOST_GUESSES = 24
MOST_UNKNOWN = 6
"""Names that are looked for, one after another, before none of them is thought to be meant."""
MAX_RESTATED_LENGTH = 400
"""Characters of a question that is also read in other words."""
ASK_SIMPLY = 'Ask for one thing in one short sentence, for example: "Which free games run on Linux?"'
_BLANKS = re.compile(r"(\s)\s+")
CORRECTED = 0.8
RESTATED = 0.9
CAN_ANSWER = (
    "I answer from the catalog: which products and releases there are, or how many; newest versions and what changed; "
    "who publishes what, what it runs on, and how products compare."
)


async def answered(store: Store, question: str, now: Instant) -> Answered:
    """The answer to the question as of `now`, out of what anybody may see in the catalog."""
    try:
        with budget.of_question():
            return await _answered(store, _BLANKS.sub(r"\1", question), now)
    except TooLong as long:
        return refused(f"I cannot tell: the question has {long}. {ASK_SIMPLY}")
    except budget.TooInvolved:
        return refused(f"I cannot tell: the question is too involved to be read. {ASK_SIMPLY}")


async def _answered(store: Store, question: str, now: Instant) -> Answered:
    database = store.database
    found = tokens(question)
    named = await names(database, question, found)
    understood = await _read(understand, found, named, now)
    for query in understood.queries:
        meant = await resolved(database, query)
        if meant.query is not None:
            return await run(store, meant.query, 1.0 if len(understood.queries) == 1 else 0.9)
        if meant.candidates:
            return _asked_back(meant)
    if not understood.doubts:
        for query in await _restated(database, question, found, named, now):
            return await run(store, query, RESTATED)
        for query in await _respelt(database, question, found, named, now):
            return await run(store, query, CORRECTED)
    return await _corrected(store, question, found, named, understood.doubts, now)


async def _read(
    read: Callable[[list[Token], Names, Instant], Understood], found: list[Token], named: Names, now: Instant
) -> Understood:
    """What the words may mean, found out beside the event loop."""
    return await budget.current().run(partial(read, found, named, now))


async def _restated(
    database: Database, question: str, found: list[Token], named: Names, now: Instant
) -> Sequence[Query]:
    """The query that the question means in other words; none where none of them is understood."""
    if len(question) > MAX_RESTATED_LENGTH:
        return ()
    spent = budget.current()
    texts = await spent.run(partial(restated, question, found, named))
    other = await spent.run(partial(plainer, question, held_names(question, found, named)))
    ways = {question: (found, named)}
    if other != question:
        again = tokens(other)
        ways[other] = again, await names(database, other, again)
        texts += [other, *await spent.run(partial(restated, other, *ways[other]))]
    for text in texts:
        if text not in ways:
            again = tokens(text)
            ways[text] = again, await names(database, text, again)
    for read in (understand, understand_fronted):
        for again, held in [ways[text] for text in dict.fromkeys([question, *texts])]:
            queries = await _understood(database, again, held, now, read)
            if queries:
                return queries[:1]
    return ()


async def _respelt(
    database: Database, question: str, found: list[Token], named: Names, now: Instant
) -> Sequence[Query]:
    """The query that the question means with mistyped words set right; none where it could be one of several."""
    meant: list[Query] = []
    if len(question) > MAX_RESTATED_LENGTH:
        return ()
    for text in await budget.current().run(lambda: list(respelt(question, found, unread(found, named)))):
        again = tokens(text)
        held = await names(database, text, again)
        queries = await _understood(database, again, held, now, understand)
        if not queries:
            queries = await _restated(database, text, again, held, now)
        meant += [query for query in queries[:1] if query not in meant]
    return meant if len(meant) == 1 else ()


async def _understood(
    database: Database,
    found: list[Token],
    named: Names,
    now: Instant,
    read: Callable[[list[Token], Names, Instant], Understood],
) -> Sequence[Query]:
    """What the words may mean with the names in them found."""
    understood = await _read(read, found, named, now)
    meant = [await resolved(database, query) for query in understood.queries]
    return [each.query for each in meant if each.query is not None]


async def _corrected(
    store: Store, question: str, found: list[Token], named: Names, doubts: Sequence[str], now: Instant
) -> Answered:
    """The answer with names taken for mistyped ones, or why there is none."""
    left = unread(found, named)
    guesses = guessed(question, found, named)
    queries = (await _read(partial(understand, most=MOST_GUESSES), found, guesses, now)).queries
    tried = [meant async for meant in _tried(store.database, queries)]
    if tried and tried[-1].query is not None:
        return await run(store, tried[-1].query, CORRECTED)
    unknown = [meant for meant in tried if not _holds_known(meant.name, question, found, named)]
    best = max(unknown, key=lambda meant: _told(meant, left), default=None)
    if best is not None and _is_name(best, left):
        return _asked_back(best)
    onward = [f"Which products mention {word}?" async for word in _mentioned(store.database, left)]
    return _not_read(doubts, left, [*onward, *offered(question, found, named)])


def _not_read(doubts: Sequence[str], left: Sequence[str], onward: Sequence[str]) -> Answered:
    words = phrases.joined([f'"{word}"' for word in left], "or")
    reasons = [*doubts, f"I do not know what {words} means here", *beyond(left)] if left else [*doubts]
    why = f": {'; '.join(reasons)}" if reasons else ", for I do not understand the question as a whole"
    offers = phrases.joined([f'"{each}"' for each in onward], "or")
    could = f"You could ask: {offers}" if offers else CAN_ANSWER
    return refused(f"I cannot tell{why}. {could}")


async def _mentioned(database: Database, words: Sequence[str]) -> AsyncGenerator[str]:
    """Those words that a product's title, tags or description holds: what was asked for may still be found by them."""
    for word in words[:MOST_UNKNOWN]:
        if (await replies.exists(database, Exists(Products(where=Mentioning((word,)))))).value:
            yield word


async def _tried(database: Database, queries: Sequence[Query]) -> AsyncGenerator[Meant]:
    """What each query's names may mean, up to the first of which all are found."""
    unknown: list[str] = []
    for query in queries:
        if len(unknown) < MOST_UNKNOWN and not any(names_it(query, name) for name in unknown):
            meant = await resolved(database, query)
            unknown.append(meant.name)
            yield meant
            if meant.query is not None:
                return


def _holds_known(name: str, question: str, found: list[Token], named: Names) -> bool:
    """Whether a product of the catalog is named within the name that none has: then the rest of it was not read."""
    known = (span(question, found, start, end) for start, ways in named["product"].items() for _, end in ways)
    return any(each in name and each != name for each in known)


def _is_name(meant: Meant, left: Sequence[str]) -> bool:
    """Whether what was not read is taken for this name, rather than for words of what no catalog holds."""
    return _told(meant, left) > 0 and (bool(meant.candidates) or not beyond(left))


def _told(meant: Meant, left: Sequence[str]) -> int:
    """How well the name stands for what was not read: words that mean nothing else count, others count against it."""
    words = [token.word for token in tokens(meant.name) if not token.word[:1].isdigit()]
    return sum(1 if word in left else -1 for word in words)


async def run(store: Store, query: Query, confidence: float) -> Answered:
    """The answer to a typed query, whoever made it."""
    try:
        reply = await _reply(store.database, query)
    except UnknownProduct as unknown:
        return refused(f'I cannot tell: the catalog has no product called "{unknown}".')
    sources = tuple(_source(store, slug, version) for slug, version in reply.sources)
    return Answered(reply.kind, reply.text, reply.rows, reply.total, reply.value, sources, query, confidence)


async def run_named(store: Store, query: Query, confidence: float) -> Answered:
    """The answer to a typed query in which products and organisations stand by name, whoever wrote it."""
    try:
        with budget.of_question():
            meant = await resolved(store.database, unresolved(query))
    except budget.TooInvolved:
        return refused(f"I cannot tell: the question is too involved to be read. {ASK_SIMPLY}")
    return _asked_back(meant) if meant.query is None else await run(store, meant.query, confidence)


def refused(text: str, candidates: Sequence[str] = ()) -> Answered:
    """No answer, and why."""
    return Answered("refused", text, (), 0, None, (), None, 0.0, tuple(candidates))


def _source(store: Store, slug: str, version: str | None) -> Source:
    address = f"{store.base_url}/products/{slug}"
    return Source(slug, version, address if version is None else f"{address}/releases")


async def _reply(database: Database, query: Query) -> Reply:
    match query:
        case Count():
            return await replies.count(database, query)
        case Exists():
            return await replies.exists(database, query)
        case Products() | Releases() | Publishers():
            return await replies.which(database, query)
        case Most():
            return await extreme_replies.most(database, query)
        case NewestOfEach():
            return await extreme_replies.newest_of_each(database, query)
        case IsNewest() | IsNewer() | Noting() | CountOf() | Same() | Beats():
            return await version_replies.reply(database, query)
        case AllAre() | NewestIs() | Precedes() | Tells():
            return await truth_replies.reply(database, query)
        case _:
            return await particular.reply(database, query)


def _asked_back(meant: Meant) -> Answered:
    what = "publisher" if meant.is_org else "product"
    if len(meant.candidates) > 1:
        names = ", ".join(meant.candidates[:-1]) + f" or {meant.candidates[-1]}"
        return refused(f'I cannot tell which {what} you mean by "{meant.name}": {names}?', meant.candidates)
    text = f'I cannot tell: I know no {what} called "{meant.name}".'
    return refused(f"{text} Did you mean {meant.candidates[0]}?" if meant.candidates else text, meant.candidates)
