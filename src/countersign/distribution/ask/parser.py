"""A question read: its items bound to each other from left to right, and the filter that they make.

The classes of items beside the slots of the filter:

    answer, find, order, when, field, time, number    members of the filter; `limit` and `by` in key=value pairs alone
    sort                                              an order of a whole list
    not, only, or, and, but                           how values are bound
    title                                             the next words are words of the title
    each                                              the next slot is what is counted by
    all                                               everything about a product is asked for
    guard                                             changes the meaning, and is bound to nothing here
    beyond                                            asks for what no catalog has
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from countersign.distribution.ask import names
from countersign.distribution.ask.dates import Range
from countersign.distribution.ask.filter import KNOWN, SLOTS, Filter, Values, is_onward, merged, with_slots
from countersign.distribution.ask.items import SENTENCE_ENDS, Corrected, Item, Recognition, question_in, recognize
from countersign.distribution.ask.lexicon import Token, tokens_of
from countersign.distribution.catalog.words import words as terms_of
from countersign.kernel.database.port import Database

MAX_NUMBER = 100
MAX_PLURAL = 10
"""How many of "the newest games" are meant."""
MAX_NOTES = 50
AUXILIARIES = frozenset(
    "is are was were does do did has have had can could isn't aren't doesn't don't didn't hasn't haven't wasn't can't"
    " any will would am".split()
)
"""What a question of Yes and No begins with."""
_MULTIPLE = frozenset(["platform", "channel", "tag", "text", "title"])
"""Slots of which a product has several values: named side by side, all are meant."""
_ABOUT_ANSWER = frozenset(["find", "order", "sort", "field", "answer", "guard", "when", "each"])
"""What only the question itself says, where it names what it is about."""
_OWNERS = frozenset("i i've we we've he she my our office".split())
"""Before "only" they say what somebody has, not what a product is limited to."""
_SLOT_OF_FIELD = {"platforms": "platform", "channels": "channel", "tags": "tag", "license": "license",
    "access": "access", "kind": "kind", "org": "org"}  # fmt: skip
_PLATFORM_NOUNS = frozenset(["platforms", "systems", "devices", "platform"])
_ABOVE = frozenset(["newer", "later", "higher", "above", "after", "since", "beyond"])
_BELOW = frozenset(["older", "earlier", "lower", "below", "before", "pre", "prior", "preceded", "precedes"])
_POLITE = tuple(
    tuple(phrase.split())
    for phrase in (
        "is it possible", "can you", "could you", "would you", "will you", "do you know", "do you happen", "can i see",
        "could i see", "may i", "is there a list", "are you able",
    )
)  # fmt: skip
"""How a request is dressed as a question."""
_EACH = frozenset(["every", "each", "all"])
_WHOLE = _EACH | {"whole", "full", "entire", "complete"}
_OTHERS = frozenset(["else", "other", "others", "besides", "also"])
_BESIDES = frozenset(["besides", "other", "apart", "aside"])
_SOMETHING = frozenset(["anything", "something", "else", "any", "some", "anywhere"])
_STEPS = frozenset(["right", "just", "immediately", "directly", "preceded", "precedes"])
"""Before "before" and "after" of versions: the next one is meant."""
_QUESTION_WORDS = frozenset(["who", "what", "which", "when", "who's"])
_PLURAL_CHANNELS = frozenset(["betas", "nightlies", "alphas"])
_COUNTED_FIELDS = frozenset(["platforms", "channels", "tags"])


@dataclass(slots=True)
class Reading:
    """What was understood. `unused` are the words that are nothing in the filter, `beyond` what no catalog holds,
    `guards` words that change the meaning, `unknown` the name of something that the catalog does not have."""

    filter: Filter
    unused: list[str] = field(default_factory=list[str])
    guards: list[str] = field(default_factory=list[str])
    beyond: list[str] = field(default_factory=list[str])
    unknown: str = ""
    corrected: list[Corrected] = field(default_factory=list[Corrected])
    is_about_text: bool = False


async def read(database: Database, question: str, now: datetime, base: Filter | None = None) -> Reading:
    """The question as of now; `base` is what the question before it meant."""
    tokens = tokens_of(question)
    recognition = await recognize(database, question, tokens, now)
    bound = Bound(tokens, recognition.items)
    if base is None or not is_onward(bound.words, {item.slot for item in recognition.items}):
        return await _Builder(database, bound, recognition).reading()
    if not bound.of("product"):
        bound.values += [Item("product", slug, 0, 0) for slug in base.where.product.any]
    bound.guards = [guard for guard in bound.guards if guard not in ("instead", "next")]
    recognition.unused = [word for word in recognition.unused if word != "else"]
    reading = await _Builder(database, bound, recognition).reading()
    reading.filter = merged(base, reading.filter, bound.words)
    return reading


class Bound:
    """What is bound after all items were read. `values` are the conditions, in the order of the question."""

    def __init__(self, tokens: Sequence[Token], items: Sequence[Item]) -> None:
        self.words = [token.word for token in tokens]
        self.sentence = question_in(tokens, items)
        self.values: list[Item] = []
        self.fields: list[str] = []
        self.orders: list[Item] = []
        self.nouns: list[Item] = []
        self.denied_releases: list[Item] = []
        self.times: list[Item] = []
        self.guards: list[str] = []
        self.beyond: list[str] = []
        self.pairs: dict[str, Any] = {}
        self.limit: int | None = None
        self.answer = self.by = self.when = self.sort = ""
        self.wants_all = self.unbound = False
        self.used: set[str] = set()
        plain = [token.word for token in tokens if not token.is_mark]
        self.is_tag_question = self._ends_in_question()
        self.is_or_not = plain[-2:] == ["or", "not"]
        self.is_terse = bool(items) and all(item.is_pair or item.slot in ("and", "or") for item in items)
        self._tokens = tokens
        self._items = self._of_question(items)
        self._only: list[int] = []
        self._is_negated, self._negated_slot, self._joint = False, "", ""
        self._in_title = self._counts_by = self._is_other = self._is_unbound_not = self.is_newer = self.is_same = False
        self._read()

    def _ends_in_question(self) -> bool:
        """Whether it ends like "…, is it?": then Yes and No are of what is before, without its "not"."""
        tail = [word for word in self.words[-4:] if word != "?"]
        is_tail = len(tail) >= 3 and tail[-3] == "," and tail[-2] in AUXILIARIES
        return is_tail and tail[-1] in ("it", "there", "they", "that")

    def _of_question(self, items: Sequence[Item]) -> list[Item]:
        """Without what the asker's own sentences say of a slot that the question says too."""
        slots = {item.slot for item in items if self.sentence.has(item)} & {*SLOTS} - {"version"}
        if slots:
            slots |= _ABOUT_ANSWER
        elif any(item.slot == "product" for item in items):
            # The question is about a product that was named before it: what else was said there is not asked.
            slots = {"tag", "text", "title"}
        return [item for item in items if item.slot not in slots or self.sentence.has(item)]

    def _read(self) -> None:
        handlers: dict[str, Callable[[Item], None]] = {
            "not": self._not, "only": self._only_beside, "or": self._or, "and": self._or, "but": self._but,
            "guard": self._guard, "beyond": lambda item: self.beyond.append(item.value), "answer": self._answer,
            "find": self._find, "order": self.orders.append, "when": self._when, "time": self.times.append,
            "field": self._field, "number": self._number,
        }  # fmt: skip
        end = 0
        for item in self._items:
            self._between(self.words[end : item.start], item)
            if item.is_pair and item.slot not in (*SLOTS, "time"):
                self.pairs.setdefault(item.slot, []).append(item.value)
            elif item.slot in ("each", "all", "sort", "newer", "same", "skip") or (item.slot == "title" and item.value == "."):
                self._titled(item) if item.slot == "title" else None
                self.is_newer |= item.slot == "newer"
                self.is_same |= item.slot == "same"
                self._counts_by |= item.slot == "each"
                self.wants_all |= item.slot == "all"
                self.sort = item.value if item.slot == "sort" else self.sort
            else:
                handlers.get(item.slot, self._value)(item)
            end = item.end
        if self._is_unbound_not:
            self.unbound = True
        if self.words[self.sentence.start : self.sentence.start + 1] == ["will"] and "you" not in self.words:
            self.beyond.append("the future")
        if "most" in self.words and not (self.orders or self.sort):
            self.guards.append("most")

    def _between(self, words: Sequence[str], item: Item) -> None:
        """What punctuation before the item ends or begins."""
        if SENTENCE_ENDS & {*words}:
            self._but(item)
            self._in_title = False
        if self._is_negated and self._negated_slot and "," in words and self._joint != "or":
            self._but(item)
        if "!=" in words or self._is_after_minus(item.start):
            self._is_negated, self._negated_slot = True, ""

    def _is_after_minus(self, at: int) -> bool:
        """Whether a minus is right before the word, as query languages exclude one."""
        before = self._tokens[at - 1] if at else None
        if before is None or before.word != "-" or before.end != self._tokens[at].start:
            return False
        return at < 2 or self._tokens[at - 2].end < before.start

    def _titled(self, item: Item) -> None:
        """ "Titled …", or words that are before it: "rail" in the title."""
        last = self.values[-1] if self.values else None
        if last is not None and last.slot == "text" and item.start - last.end <= 2:
            last.slot = "title"
        else:
            self._in_title = True

    def _not(self, item: Item) -> None:
        # "Isn't it free?" asks whether it is.
        asks = item.start == self.sentence.start and self.words[item.start] in AUXILIARIES
        following = self.words[item.end] if item.end < len(self.words) else ","
        last = self.values[-1] if self.values else None
        if self.words[item.start] == "no" and following in (",", ".") and item.start == self.sentence.start:
            # "No, I mean …".
            return
        if self.words[item.start] == "no" and following in (",", ";", ".") and last and last.end == item.start:
            # "iOS no".
            last.is_negated = True
            return
        self._is_negated = self._is_unbound_not = not asks and not self.is_tag_question
        self._negated_slot = self._joint = ""
        before = self.words[max(0, item.start - 2) : item.start]
        self._is_other = self.words[item.start] in _BESIDES and bool(_SOMETHING & {*before})

    def _only_beside(self, item: Item) -> None:
        if not _OWNERS & {*self.words[max(0, item.start - 3) : item.start]}:
            self._only.append(self._items.index(item))

    def _or(self, item: Item) -> None:
        self._joint = item.slot

    def _but(self, _item: Item) -> None:
        self._is_negated = False
        self._negated_slot = self._joint = ""

    def _guard(self, item: Item) -> None:
        self.guards.append(" ".join(self.words[item.start : item.end]))

    def _answer(self, item: Item) -> None:
        self.answer = self.answer or item.value

    def _find(self, item: Item) -> None:
        if self._counts_by and item.value == "publishers":
            self.by, self._counts_by = "org", False
            return
        if item.value != "releases" or not self._is_negated:
            self.nouns.append(item)
            return
        beside = self.values[-1] if self.values and self.values[-1].end == item.start else None
        if beside is not None and beside.slot in ("platform", "channel"):
            # "No Linux version": the platform is denied, not its releases.
            self.denied_releases.append(item)
        elif any(value.slot == "kind" for value in self.values):
            self.when, self._is_negated, self._is_unbound_not = "none", False, False
        else:
            self.nouns.append(item)

    def _when(self, item: Item) -> None:
        following = self._items[self._items.index(item) + 1 :][:1]
        if self._is_negated and following and following[0].slot == "channel":
            # "Never released as stable": the channel is denied.
            return
        if self._is_negated and not self._negated_slot:
            self.when, self._is_negated, self._is_unbound_not = "none", False, False
        elif self.when in ("", "any"):
            self.when = item.value
        if self.when == "first" and self.words[item.end - 1] in ("release", "version"):
            self.nouns.append(Item("find", "releases", item.end - 1, item.end))

    def _field(self, item: Item) -> None:
        slot = _SLOT_OF_FIELD.get(item.value, "")
        following = self.words[item.end] if item.end < len(self.words) else ""
        if self._counts_by and slot:
            self.by, self._counts_by = slot, False
        elif following in (":", "=", "!=") and slot:
            self._is_negated = self._is_negated or following == "!="
        else:
            self.fields.append(item.value)

    def _number(self, item: Item) -> None:
        if _PLATFORM_NOUNS & {*self.words[item.end : item.end + 4]}:
            self.guards.append(f"{item.value} platforms")
        elif self.limit is None and item.value.isdigit() and int(item.value) <= MAX_NUMBER:
            self.limit = max(1, int(item.value))
        else:
            version = Item("version", self._compared(item), item.start, item.end, is_negated=self._is_negated)
            self.values.append(version)

    def _compared(self, item: Item) -> str:
        """The version, with `>` or `<` where the words before it compare with it."""
        before = self.words[max(0, item.start - 4) : item.start]
        for words, sign in ((_ABOVE, ">"), (_BELOW, "<")):
            if words & {*before}:
                self.guards = [guard for guard in self.guards if not words & {*guard.split()} and guard != "than"]
                self.used |= words & {*before}
                if _STEPS & {*before}:
                    self.limit = 1
                    self.orders = [Item("order", "newest" if sign == "<" else "oldest", item.start, item.start)]
                return f"{sign}{item.value}"
        is_between = before[-1:] == ["and"] and "between" in self.words[max(0, item.start - 6) : item.start]
        if not is_between and before[-1:] not in (["to"], ["until"]):
            return str(item.value)
        for other in self.of("version"):
            if not other.value.startswith((">", "<")):
                other.value = f">{other.value}"
        return f"<={item.value}"

    def _value(self, item: Item) -> None:
        if item.slot == "quoted" or (item.slot == "text" and self._in_title):
            item.slot = "title" if self._in_title else "text"
        if self._is_negated and self._negated_slot not in ("", item.slot) and self._joint != "or":
            self._is_negated = False
        if item.is_pair:
            item.is_negated |= self._is_negated
            self._is_negated = False
        else:
            item.is_negated, item.joint = self._is_negated, self._joint
        self._is_unbound_not &= not item.is_negated
        if item.is_negated and self._is_other and item.slot in ("platform", "channel"):
            # "Anything besides Windows": one of the others.
            others = [each for each in KNOWN[item.slot] if each not in str(item.value).split("|")]
            item.value, item.is_negated, self._is_negated = "|".join(others), False, False
        self._negated_slot, self._joint = item.slot, ""
        self.values.append(item)

    def of(self, slot: str) -> list[Item]:
        """The values of a slot."""
        return [item for item in self.values if item.slot == slot]

    def slots(self) -> dict[str, Values]:
        """The conditions of all slots."""
        slots = {slot: _values(slot, self.of(slot)) for slot in SLOTS if self.of(slot)}
        for place in self._only:
            self._narrow(slots, place)
        return slots

    def _narrow(self, slots: dict[str, Values], place: int) -> None:
        """ "Only" is for the platforms or channels that follow, or else for those before it."""
        before = [item for item in self._items[:place] if item.slot not in ("and", "or", "but")]
        for item in (*self._items[place + 1 : place + 2], *before[-1:]):
            if item.slot in ("platform", "channel") and not item.is_negated and item.slot in slots:
                values = slots[item.slot]
                others = (each for each in KNOWN[item.slot] if each not in (*values.any, *values.all))
                slots[item.slot] = replace(values, none=tuple(dict.fromkeys((*values.none, *others))))
                return


def _values(slot: str, items: Sequence[Item]) -> Values:
    lists: dict[str, list[str]] = {"any": [], "all": [], "none": []}
    are_alternatives = any(item.joint == "or" and not item.is_negated for item in items)
    for item in items:
        texts = str(item.value).split("|")
        lists[_place(slot, item, texts, are_alternatives=are_alternatives)] += texts
    if len(lists["all"]) == 1 and not lists["any"] and slot != "version":
        lists["any"], lists["all"] = lists["all"], []
    unique: dict[str, Any] = {name: tuple(dict.fromkeys(texts))[:12] for name, texts in lists.items()}
    return Values(**unique)


def _place(slot: str, item: Item, texts: Sequence[str], *, are_alternatives: bool) -> str:
    if item.is_negated:
        return "none"
    if slot == "version":
        return "all" if texts[0].startswith((">", "<")) else "any"
    return "any" if len(texts) > 1 or are_alternatives or slot not in _MULTIPLE else "all"


class _Builder:
    """Decides what is looked for and how it is answered."""

    def __init__(self, database: Database, bound: Bound, recognition: Recognition) -> None:
        self._database, self._bound, self._recognition = database, bound, recognition
        self._words = {*bound.words}
        self._slots = bound.slots()
        self._products = [item for item in bound.of("product") if not item.is_negated]
        self._fields = list(dict.fromkeys(bound.fields))
        self._kinds = [item.start for item in bound.of("kind")]
        self._releases = [item for item in bound.nouns if item.value == "releases"]
        self._members: dict[str, Any] = {}
        words = bound.words[bound.sentence.start :]
        is_polite = any(tuple(words[: len(phrase)]) == phrase for phrase in _POLITE)
        self._first = words[0] if words and not is_polite else ""
        self._asks_whether = self._first in AUXILIARIES or bound.is_tag_question or bound.is_or_not

    async def reading(self) -> Reading:
        """The filter, and what was not used."""
        bound, recognition = self._bound, self._recognition
        self._times()
        if not bound.is_terse:
            self._nouns()
            self._find()
            await self._of_publisher()
            self._order()
            self._answer()
            self._in_notes()
            self._limit()
        for name, values in bound.pairs.items():
            self._members[name] = tuple(values) if name == "fields" else values[0]
        if self._members.get("answer", "list") == "list":
            implied = "breakdown" if "by" in bound.pairs else "fields" if "fields" in bound.pairs else ""
            self._members |= {"answer": implied} if implied else {}
        filter = with_slots(Filter(**self._members), **self._slots)
        unused = [word for word in recognition.unused if word not in bound.used]
        if bound.unbound and (unused or self._fields):
            bound.guards.append("not")
        return Reading(filter, unused, bound.guards, bound.beyond, recognition.unknown, recognition.corrected, bound.wants_all)

    def _nouns(self) -> None:
        """What the nouns of the question say beside what is looked for."""
        bound = self._bound
        if bound.denied_releases and not bound.nouns and self._products:
            bound.nouns = self._releases = bound.denied_releases
        if self._products and any(noun.value == "publishers" for noun in bound.nouns):
            self._fields.append("org")
            bound.nouns = [noun for noun in bound.nouns if noun.value != "publishers"]
        if bound.when in ("first", "last") and not bound.times:
            bound.orders.append(Item("order", "newest" if bound.when == "last" else "oldest", 0, 0))
            bound.when = "any"
        bound.nouns = [noun for noun in bound.nouns if noun.value != "any"]

    def _times(self) -> None:
        bound, channel = self._bound, self._slots.get("channel", Values())
        if bound.times:
            span = self._span()
            if span is None:
                bound.guards.append("several times")
                return
            self._members |= {"since": _moment(span.since), "until": _moment(span.until), "when": bound.when or "any"}
            if channel.none and not (channel.any or channel.all) and {"no", "without"} & self._words:
                # "No beta since March": such a release is denied in that time.
                self._slots["channel"] = Values(any=channel.none)
                self._members["when"] = "none"
        elif bound.when == "none" and (channel.any or channel.all):
            self._slots["channel"] = Values(none=(*channel.any, *channel.all, *channel.none))
        elif bound.when == "none":
            self._members["when"] = "none"

    def _span(self) -> Range | None:
        """The times as one range; neighbours joined by "or" are both in it. None where there are several apart."""
        ranges = [item.value for item in self._bound.times]
        closed = [item for item in self._bound.times if None not in item.value]
        if len(closed) > 1:
            between = self._bound.words[closed[0].end : closed[1].start]
            if len(closed) > 2 or "or" not in between:
                return None
            return Range(min(each.since for each in ranges), max(each.until for each in ranges))
        since = [each.since for each in ranges if each.since is not None]
        until = [each.until for each in ranges if each.until is not None]
        return Range(max(since, default=None), min(until, default=None))

    def _find(self) -> None:
        bound = self._bound
        find = bound.nouns[0].value if bound.nouns else "products"
        if "org" in self._fields and not self._products:
            find = "publishers"
        if find == "releases" and _EACH & self._words and not (bound.orders or bound.times or self._products):
            bound.orders.append(Item("order", "newest", 0, 0))
        if find == "releases":
            noun = bound.nouns[0].start
            if any(bound.sentence.start <= kind < noun - 1 for kind in self._kinds):
                find = "products"
        if not bound.nouns and not self._kinds:
            is_dated = bound.times and bound.when in ("", "any") and self._first not in ("who", "whose")
            if is_dated or self._is_plural_channel() or self._is_extreme_channel():
                find = "releases"
            if {"play", "playable"} & self._words:
                self._slots["kind"] = Values(any=("game",))
        self._members["find"] = find

    def _is_plural_channel(self) -> bool:
        return any(self._bound.words[item.start] in _PLURAL_CHANNELS for item in self._bound.of("channel"))

    def _is_extreme_channel(self) -> bool:
        """Whether "the newest beta" is asked for."""
        orders = self._bound.orders
        return bool(orders) and any(item.start == orders[-1].end for item in self._bound.of("channel"))

    def _order(self) -> None:
        bound = self._bound
        if bound.limit is not None:
            self._members["limit"] = bound.limit
        if bound.sort:
            self._members |= {"order": bound.sort, "limit": MAX_NUMBER}
        elif bound.orders:
            self._members["order"] = bound.orders[0].value
        if self._members.get("order") == "products":
            self._members["find"] = "publishers"

    async def _of_publisher(self) -> None:
        """ "What else have the makers of it made?": what is asked for is of the publisher of the product."""
        products = self._bound.of("product")
        if len(products) != 1:
            return
        product = products[0]
        others = bool(_OTHERS & self._words)
        others_named = others and bool({"made", "they"} & self._words) and "else" in self._words
        kinds = any(
            self._bound.words[item.end - 1].endswith("s") and item.end != product.start
            for item in self._bound.of("kind")
        )
        if not ("org" in self._fields or others_named) or not (others or kinds):
            return
        org = await names.publisher_of(self._database, product.value)
        excluded = Values(none=(product.value,)) if others or product.is_negated else Values()
        self._slots |= {"org": Values(any=(org,)), "product": excluded}
        self._fields = [name for name in self._fields if name not in ("org", "notes")]
        self._products = []

    def _answer(self) -> None:
        bound = self._bound
        self._compare()
        counted = _COUNTED_FIELDS & {*self._fields}
        topics = [_SLOT_OF_FIELD[name] for name in self._fields if name in ("platforms", "channels", "tags", "license", "kind")]
        if self._members.get("order") == "products" and topics:
            self._members |= {"answer": "breakdown", "by": topics[0], "find": "products", "order": "title"}
        elif bound.answer == "exists":
            self._members["answer"] = "exists"
        elif self._products and bound.orders and (bound.by == "channel" or len(bound.of("channel")) > 1):
            self._members |= {"answer": "fields", "fields": ("channels",), "order": "title"}
        elif bound.is_newer and self._products and bound.of("version"):
            version = self._slots["version"]
            self._slots["version"] = Values(all=tuple(f">{each}" for each in version.any) + version.all)
            self._members |= {"find": "releases", "answer": "exists"}
        elif bound.by and not bound.orders and not (self._members["find"] == "releases" and self._releases):
            self._members |= {"answer": "breakdown", "by": bound.by}
        elif bound.answer == "count" and not (self._products and counted) and self._members.get("order") != "products":
            self._members["answer"] = "count"
            self._members["find"] = "releases" if len(self._products) == 1 else self._members["find"]
        elif bound.answer == "compare" and len(bound.of("product")) > 1:
            self._members["answer"] = "compare"
            self._slots["product"] = Values(any=tuple(str(item.value) for item in bound.of("product")))
            bound.guards = [guard for guard in bound.guards if guard != "not"]
        elif bound.answer == "count" and self._fields:
            self._members |= {"answer": "fields", "fields": tuple(self._fields)}
        elif self._products:
            self._members |= self._answer_about_products()
        elif self._asks_whether:
            self._members["answer"] = "exists"

    def _compare(self) -> None:
        """ "Are A and B by the same studio?", "Was A updated more recently than B?": Yes and No about two products."""
        bound = self._bound
        fields = [name for name in self._fields if name in _SLOT_OF_FIELD]
        if len(self._products) == 2 and self._asks_whether and "than" in bound.guards and bound.orders:
            bound.guards.remove("than")
            bound.answer = "exists"
        elif bound.is_same and len(self._products) > 1 and fields:
            bound.answer = "exists"
            self._members["fields"] = tuple(fields)
        elif bound.is_same:
            bound.guards.append("same")
        is_of_one = len(self._products) == 1 and bool(self._kinds or bound.of("org"))
        if self._asks_whether and self._products and bound.orders and (bound.times or is_of_one):
            bound.guards.append(self._members["order"])
        if bound.times and {"current", "currently"} & {bound.words[item.start] for item in bound.orders}:
            bound.guards.append("current")
        if len(self._products) > 1 and bound.of("version"):
            bound.guards.append("versions of several products")

    def _answer_about_products(self) -> dict[str, Any]:
        bound, version = self._bound, self._slots.get("version")
        fields = tuple(self._fields[:4])
        if self._first == "who" and not fields:
            fields = ("org",)
        if self._asks_whether and "notes" not in fields and not (fields and _QUESTION_WORDS & self._words):
            is_choice = len(self._kinds) > 1 and "or" in self._words and len(self._products) == 1
            return {"answer": "fields", "fields": ("kind",)} if is_choice else {"answer": "exists"}
        if version and not fields and not bound.orders and not bound.nouns:
            fields = ("notes",)
        if bound.when == "first":
            self._members |= {"order": "oldest", "when": "any"}
        if fields and fields != ("versions",):
            is_whole = "notes" in fields and _WHOLE & self._words
            return {"answer": "fields", "fields": fields, **({"limit": MAX_NOTES} if is_whole else {})}
        return self._rows_of_products()

    def _rows_of_products(self) -> dict[str, Any]:
        bound = self._bound
        several = len(self._products) > 1
        conditions = [item for item in bound.values if item.slot not in ("product", "version", "channel")]
        is_extreme = self._members.get("order") in ("newest", "oldest")
        order = self._members.get("order")
        is_choice = bool(bound.orders) and any(item.joint == "or" for item in self._products)
        if several and (conditions or is_choice or order in ("releases", "platforms") or (is_extreme and self._first == "which" and not bound.nouns)):
            return {"answer": "list", **({"limit": 1} if bound.orders else {})}
        if self._members["find"] == "releases" or bound.orders or self._fields:
            return self._releases_of_products(several=several)
        if (conditions or "channel" in self._slots) and not bound.wants_all:
            return {"answer": "exists"}
        return {"answer": "fields"}

    def _releases_of_products(self, *, several: bool) -> dict[str, Any]:
        bound, version = self._bound, self._slots.get("version", Values())
        if version.any and not bound.orders:
            return {"find": "releases", "answer": "fields", "fields": ("published_at",)}
        if bound.orders and several:
            return {"find": "products", "answer": "fields", "fields": ("versions",)}
        nouns = {bound.words[noun.end - 1] for noun in self._releases}
        is_singular = bool(nouns & {"version", "release", "build", "update", "number"})
        is_open = not self._fields and not (_EACH | {"list"}) & self._words and not bound.times
        is_one = is_open and not version.all and self._members.get("limit") is None
        if is_one and (bound.orders or is_singular):
            return {"find": "releases", "limit": 1, "order": self._members.get("order", "newest")}
        return {"find": "releases"}

    def _in_notes(self) -> None:
        """Unknown words of a question about what changed are looked for in the notes."""
        unused = [word for word in self._recognition.unused if word not in self._bound.used]
        is_open = "version" not in self._slots or (self._asks_whether and "notes" in self._fields)
        is_asked = "notes" in self._fields or bool(self._releases) or "published_at" in self._fields
        if not (len(self._products) == 1 and unused and is_asked and is_open) or self._bound.is_newer:
            return
        if self._asks_whether and "notes" not in self._fields:
            return
        terms = tuple(terms_of(" ".join(unused))[:6])
        self._slots["text"] = Values(all=terms) if self._asks_whether else Values(any=terms)
        self._members |= {"find": "releases", "answer": "exists" if self._asks_whether else "fields"}
        self._members |= {"fields": ("notes",), "order": "title", "limit": None}
        self._recognition.unused, self._recognition.unknown = [], ""

    def _limit(self) -> None:
        """How many are meant where the question gives no number."""
        members = self._members
        order = members.get("order")
        if order is None or "limit" in members:
            return
        if order in ("releases", "platforms", "products") and members["find"] != "releases":
            members["limit"] = 1
        elif order == "newest" and "answer" not in members and self._is_of_each():
            members |= {"find": "products", "answer": "fields", "fields": ("versions",)}
        elif order in ("newest", "oldest") and not self._products and members.get("when") != "last":
            members["limit"] = 1 if members["find"] == "releases" or not self._is_plural() else MAX_PLURAL

    def _is_of_each(self) -> bool:
        """Whether the newest release of each product is meant."""
        is_each = bool(self._bound.by) or bool(_EACH & self._words)
        if self._members["find"] != "releases":
            return is_each and self._is_extreme_channel()
        nouns = {self._bound.words[noun.end - 1] for noun in self._releases}
        return is_each or len(self._products) > 1 or ("versions" in nouns and not self._products)

    def _is_plural(self) -> bool:
        if {"was", "is", "one"} & {*self._bound.words[:6]} or "one" in self._words:
            return False
        nouns = [*self._bound.of("kind"), *self._bound.nouns]
        return any(self._bound.words[noun.end - 1].endswith("s") for noun in nouns)


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")
