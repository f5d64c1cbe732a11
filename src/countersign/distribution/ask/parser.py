"""A question read: its items bound to each other from left to right, and the filter that they make.

The classes of items beside the slots of the filter:

    answer, find, order, when, field, time, number    members of the filter; `limit` and `by` in key=value pairs alone
    sort                                              an order of a whole list
    not, only, or, and, but                           how values are bound
    titled                                            the next words are words of the title
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
FLAGS = ("each", "all", "sort", "newer", "same", "skip")
"""Classes of words of which it counts whether the question has them."""
MAX_PLURAL = 10
"""How many of "the newest games" are meant."""
MAX_NOTES = 50
AUXILIARIES = frozenset(
    str.split(
        "is are was were does do did has have had can could isn't aren't doesn't don't didn't hasn't haven't wasn't can't"
        " any will would am"
    )
)
"""What a question of Yes and No begins with."""
_MULTIPLE = frozenset(["platform", "channel", "tag", "text", "title"])
"""Slots of which a product has several values: named side by side, all are meant."""
_ABOUT_ANSWER = frozenset(["find", "order", "sort", "field", "answer", "guard", "when", "each"])
"""What only the question itself says, where it names what it is about."""
_OWNERS = frozenset(str.split("i i've we we've he she my our office"))
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
_TOPICS = frozenset(["platforms", "channels", "tags", "license", "kind"])
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

    @property
    def is_whole(self) -> bool:
        """Whether every word that has a meaning was used."""
        return not (self.unused or self.guards or self.beyond or self.unknown)


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
        self.flags: set[str] = set()
        self.used: set[str] = set()
        plain = [token.word for token in tokens if not token.is_mark]
        self.is_tag_question = self._ends_in_question()
        self.is_or_not = plain[-2:] == ["or", "not"]
        self.is_terse = bool(items) and all(item.is_pair or item.slot in ("and", "or") for item in items)
        self._tokens = tokens
        self._items = self._of_question(items)
        self._only: list[int] = []
        self._is_negated, self._negated_slot, self._joint = False, "", ""
        self._is_other = self._is_unbound_not = False
        self._read()
        self._end()

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
            "field": self._field, "number": self._number, "quoted": self._value, "titled": self._titled,
            **dict.fromkeys(FLAGS, self._flag), **dict.fromkeys(SLOTS, self._value),
        }  # fmt: skip
        end = 0
        for item in self._items:
            self._between(self.words[end : item.start], item)
            is_member = item.is_pair and item.slot not in (*SLOTS, "time")
            (self._pair if is_member else handlers[item.slot])(item)
            end = item.end

    def _pair(self, item: Item) -> None:
        self.pairs.setdefault(item.slot, []).append(item.value)

    def _flag(self, item: Item) -> None:
        self.flags.add(item.slot)
        self.sort = item.value if item.slot == "sort" else self.sort

    def _end(self) -> None:
        """What only the whole question tells."""
        begin = self.words[self.sentence.start : self.sentence.start + 1]
        if begin == ["will"] and "you" not in self.words:
            self.beyond.append("the future")
        if "most" in self.words and not [*self.orders, *self.sort]:
            self.guards.append("most")

    def _between(self, words: Sequence[str], item: Item) -> None:
        """What punctuation before the item ends or begins."""
        if SENTENCE_ENDS & {*words}:
            self._but(item)
            self.flags.discard("titled")
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
        last = self.values[-1] if self.values else Item("", "", -9, -9)
        if last.slot == "text" and item.start - last.end <= 2:
            last.slot = "title"
        else:
            self.flags.add("titled")

    def _not(self, item: Item) -> None:
        if self.words[item.start] == "no" and self._is_answer_no(item):
            return
        # "Isn't it free?" asks whether it is.
        asks = item.start == self.sentence.start and self.words[item.start] in AUXILIARIES
        self._is_negated = self._is_unbound_not = not (asks or self.is_tag_question)
        self._negated_slot = self._joint = ""
        before = {*self.words[max(0, item.start - 2) : item.start]}
        self._is_other = self.words[item.start] in _BESIDES and bool(_SOMETHING & before)

    def _is_answer_no(self, item: Item) -> bool:
        """ "No, I mean …" denies nothing; "iOS no" denies what is before it."""
        following = self.words[item.end] if item.end < len(self.words) else ","
        last = self.values[-1] if self.values else None
        if last is not None and last.end == item.start and following in (",", ";", "."):
            last.is_negated = True
            return True
        return item.start == self.sentence.start and following in (",", ".")

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
        if "each" in self.flags and item.value == "publishers":
            self.by = "org"
            self.flags.discard("each")
        elif item.value == "releases" and self._is_negated:
            self._deny_releases(item)
        else:
            self.nouns.append(item)

    def _deny_releases(self, item: Item) -> None:
        beside = self.values[-1].slot if self.values and self.values[-1].end == item.start else ""
        if beside in ("platform", "channel"):
            # "No Linux version": the platform is denied, not its releases.
            self.denied_releases.append(item)
        elif self.of("kind"):
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
        if "each" in self.flags and slot:
            self.by = slot
            self.flags.discard("each")
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
                self._use(words & {*before}, item, sign)
                return f"{sign}{item.value}"
        is_between = before[-1:] == ["and"] and "between" in self.words[max(0, item.start - 6) : item.start]
        if not is_between and before[-1:] not in (["to"], ["until"]):
            return str(item.value)
        for other in self.of("version"):
            other.value = f">{other.value.lstrip('<>')}"
        return f"<={item.value}"

    def _use(self, words: frozenset[str], item: Item, sign: str) -> None:
        """Take words for a comparison of versions; of "right before" the next one is meant."""
        self.used |= words
        self.guards = [guard for guard in self.guards if not (words | {"than"}) & {*guard.split()}]
        if _STEPS & {*self.words[max(0, item.start - 4) : item.start]}:
            self.limit = 1
            self.orders = [Item("order", "newest" if sign == "<" else "oldest", item.start, item.start)]

    def _value(self, item: Item) -> None:
        if item.slot in ("quoted", "text"):
            item.slot = "title" if "titled" in self.flags else "text"
        if self._is_negated and self._negated_slot not in ("", item.slot) and self._joint != "or":
            self._is_negated = False
        if item.is_pair:
            item.is_negated |= self._is_negated
            self._is_negated = False
        else:
            item.is_negated, item.joint = self._is_negated, self._joint
        self._is_unbound_not &= not item.is_negated
        if self._is_other and item.slot in ("platform", "channel"):
            self._one_of_the_others(item)
        self._negated_slot, self._joint = item.slot, ""
        self.values.append(item)

    def _one_of_the_others(self, item: Item) -> None:
        """ "Anything besides Windows": one of the others."""
        others = [each for each in KNOWN[item.slot] if each not in str(item.value).split("|")]
        item.value, item.is_negated = "|".join(others), False
        self._is_negated = self._is_other = False

    @property
    def has_unbound_not(self) -> bool:
        """Whether a "not" is left that denies nothing which was understood."""
        return self._is_unbound_not

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
        self._members: dict[str, Any] = {}
        self._first = self._first_word()
        self._asks_whether = any((self._first in AUXILIARIES, bound.is_tag_question, bound.is_or_not))

    def _first_word(self) -> str:
        words = self._bound.words[self._bound.sentence.start :]
        is_polite = any(tuple(words[: len(phrase)]) == phrase for phrase in _POLITE)
        return words[0] if words and not is_polite else ""

    @property
    def _releases(self) -> list[Item]:
        return [item for item in self._bound.nouns if item.value == "releases"]

    @property
    def _unused(self) -> list[str]:
        return [word for word in self._recognition.unused if word not in self._bound.used]

    @property
    def _order_of(self) -> str:
        return str(self._members.get("order", ""))

    async def reading(self) -> Reading:
        """The filter, and what was not used."""
        bound, recognition = self._bound, self._recognition
        self._times()
        if not bound.is_terse:
            self._nouns()
            self._find()
            await self._of_publisher()
            self._order()
            self._compare()
            self._answer()
            self._in_notes()
            self._limit()
        self._pairs()
        if bound.has_unbound_not and [*self._unused, *self._fields] and self._members.get("answer") != "compare":
            bound.guards.append("not")
        found = with_slots(Filter(**self._members), **self._slots)
        rest = bound.guards, bound.beyond, recognition.unknown, recognition.corrected
        return Reading(found, self._unused, *rest, is_about_text="all" in bound.flags)

    def _pairs(self) -> None:
        """What was written as key=value goes before what was concluded."""
        pairs = self._bound.pairs
        for name, values in pairs.items():
            self._members[name] = tuple(values) if name == "fields" else values[0]
        if self._members.get("answer", "list") == "list" and pairs.keys() & {"by", "fields"}:
            self._members["answer"] = "breakdown" if "by" in pairs else "fields"

    def _nouns(self) -> None:
        """What the nouns of the question say beside what is looked for."""
        bound = self._bound
        if bound.denied_releases and self._products and not bound.nouns:
            bound.nouns = bound.denied_releases
        left_out = ["any"]
        if bound.of("product") and "publishers" in [noun.value for noun in bound.nouns]:
            self._fields.append("org")
            left_out.append("publishers")
        bound.nouns = [noun for noun in bound.nouns if noun.value not in left_out]
        order = {"first": "oldest", "last": "newest"}.get("" if bound.times else bound.when)
        if order:
            bound.orders.append(Item("order", order, 0, 0))
            bound.when = "any"

    def _times(self) -> None:
        bound, channel = self._bound, self._slots.get("channel", Values())
        span = self._span()
        held = (*channel.any, *channel.all)
        if bound.times and span is None:
            bound.guards.append("several times")
        elif span is not None:
            self._members |= {"since": _moment(span.since), "until": _moment(span.until), "when": bound.when or "any"}
            if all((channel.none, not held, {"no", "without"} & self._words)):
                # "No beta since March": such a release is denied in that time.
                self._slots["channel"] = Values(any=channel.none)
                self._members["when"] = "none"
        elif bound.when == "none" and held:
            self._slots["channel"] = Values(none=(*held, *channel.none))
        elif bound.when == "none":
            self._members["when"] = "none"

    def _span(self) -> Range | None:
        """The times as one range; neighbours joined by "or" are both in it. None where there are none, or apart."""
        times = self._bound.times
        closed = [item for item in times if None not in item.value]
        since: list[datetime] = [*filter(None, (item.value.since for item in times))]
        until: list[datetime] = [*filter(None, (item.value.until for item in times))]
        if len(closed) > 1:
            is_joined = len(closed) == 2 and "or" in self._bound.words[closed[0].end : closed[1].start]
            return Range(min(since), max(until)) if is_joined else None
        return Range(max(since, default=None), min(until, default=None)) if times else None

    def _find(self) -> None:
        bound = self._bound
        find = bound.nouns[0].value if bound.nouns else "products"
        if "org" in self._fields and not bound.of("product"):
            find = "publishers"
        if find == "releases":
            find = self._find_releases()
        if not [*bound.nouns, *self._kinds]:
            if self._is_dated() or self._is_plural_channel() or self._is_extreme_channel():
                find = "releases"
            if {"play", "playable"} & self._words:
                self._slots["kind"] = Values(any=("game",))
        self._members["find"] = find

    def _find_releases(self) -> str:
        """Releases, unless the kind of product is what is asked for: "games with a release in May"."""
        bound = self._bound
        if _EACH & self._words and not [*bound.orders, *bound.times, *self._products]:
            bound.orders.append(Item("order", "newest", 0, 0))
        noun = bound.nouns[0].start
        is_of_products = any(bound.sentence.start <= kind < noun - 1 for kind in self._kinds)
        return "products" if is_of_products else "releases"

    def _is_dated(self) -> bool:
        bound = self._bound
        return all((bound.times, bound.when in ("", "any"), self._first not in ("who", "whose")))

    def _is_plural_channel(self) -> bool:
        return any(self._bound.words[item.start] in _PLURAL_CHANNELS for item in self._bound.of("channel"))

    def _is_extreme_channel(self) -> bool:
        """Whether "the newest beta" is asked for."""
        ends = [item.end for item in self._bound.orders[-1:]]
        return any(item.start in ends for item in self._bound.of("channel"))

    def _order(self) -> None:
        bound = self._bound
        if bound.limit is not None:
            self._members["limit"] = bound.limit
        if bound.sort:
            self._members |= {"order": bound.sort, "limit": MAX_NUMBER}
        elif bound.orders:
            self._members["order"] = bound.orders[0].value
        if self._order_of == "products":
            self._members["find"] = "publishers"

    async def _of_publisher(self) -> None:
        """ "What else have the makers of it made?": what is asked for is of the publisher of the product."""
        products = self._bound.of("product")
        others = bool(_OTHERS & self._words)
        if len(products) != 1 or not self._is_of_publisher(products[0], others=others):
            return
        product = products[0]
        org = await names.publisher_of(self._database, product.value)
        excluded = Values(none=(product.value,)) if others or product.is_negated else Values()
        self._slots |= {"org": Values(any=(org,)), "product": excluded}
        self._fields = [name for name in self._fields if name not in ("org", "notes")]
        self._products = []
        self._members["find"] = "products"

    def _is_of_publisher(self, product: Item, *, others: bool) -> bool:
        words = self._bound.words
        kinds = [item for item in self._bound.of("kind") if words[item.end - 1].endswith("s")]
        is_plural = any(item.end != product.start for item in kinds)
        is_named = all((others, {"made", "they"} & self._words, "else" in self._words))
        return ("org" in self._fields or is_named) and (others or is_plural or product.is_negated)

    def _compare(self) -> None:
        """ "Are A and B by the same studio?", "Was A updated more recently than B?": Yes and No about two products."""
        bound = self._bound
        fields = [name for name in self._fields if name in _SLOT_OF_FIELD]
        is_two = len(self._products) == 2
        if all((is_two, self._asks_whether, "than" in bound.guards, bound.orders)):
            bound.guards.remove("than")
            bound.answer = "exists"
        elif "same" in bound.flags and len(self._products) > 1 and fields:
            bound.answer = "exists"
            self._members["fields"] = tuple(fields)
        elif "same" in bound.flags:
            bound.guards.append("same")
        bound.guards += [guard for guard, holds in self._doubts() if holds]

    def _doubts(self) -> tuple[tuple[str, bool], ...]:
        """What could be meant in several ways."""
        bound = self._bound
        is_of_one = len(self._products) == 1 and bool([*self._kinds, *bound.of("org")])
        is_of_some = self._asks_whether and bool(self._products and bound.orders)
        orders = {bound.words[item.start] for item in bound.orders}
        return (
            (self._order_of, is_of_some and (bool(bound.times) or is_of_one)),
            ("current", bool(bound.times and {"current", "currently"} & orders)),
            ("versions of several products", len(self._products) > 1 and bool(bound.of("version"))),
        )

    def _answer(self) -> None:
        """The form of the answer: the first rule that fits."""
        for fits, form in _FORMS:
            if fits(self):
                form(self)
                return

    @property
    def counts_by_order(self) -> list[str]:
        """The slots that "which platform has the most games" counts by."""
        is_ordered = self._order_of == "products"
        return [_SLOT_OF_FIELD[name] for name in self._fields if name in _TOPICS and is_ordered]

    @property
    def wants_newest_of_channels(self) -> bool:
        """Whether the newest release in each channel is asked for."""
        bound = self._bound
        is_by_channel = bound.by == "channel" or len(bound.of("channel")) > 1
        return all((self._products, bound.orders, is_by_channel))

    def is_count(self) -> bool:
        """Whether a number is asked for that is not a number of fields of a product."""
        counted = self._products and _COUNTED_FIELDS & {*self._fields}
        return self._bound.answer == "count" and not counted and self._order_of != "products"

    def is_newer(self) -> bool:
        """Whether there is a release after a version."""
        return all(("newer" in self._bound.flags, self._products, self._bound.of("version")))

    def is_breakdown(self) -> bool:
        """Whether something is counted by a slot."""
        bound = self._bound
        is_of_releases = self._members["find"] == "releases" and self._releases
        return bool(bound.by) and not (bound.orders or is_of_releases)

    def newer(self) -> None:
        """Ask for releases after the version."""
        version = self._slots["version"]
        self._slots["version"] = Values(all=(*(f">{each}" for each in version.any), *version.all))
        self._members |= {"find": "releases", "answer": "exists"}

    def count(self) -> None:
        """Ask for a number: of a product, how many releases it has."""
        self._members["answer"] = "count"
        self._members["find"] = "releases" if len(self._products) == 1 else self._members["find"]

    def compare(self) -> None:
        """Compare products, whatever words are between them."""
        self._members["answer"] = "compare"
        self._slots["product"] = Values(any=tuple(str(item.value) for item in self._bound.of("product")))

    def about_products(self) -> None:
        """Answer about named products."""
        bound = self._bound
        by_word = ("org",) if self._first == "who" else ()
        fields = tuple(self._fields[:4]) or by_word
        is_open = "notes" in fields or bool(fields and _QUESTION_WORDS & self._words)
        if self._asks_whether and not is_open:
            self._members |= self._whether_of_products()
        elif "version" in self._slots and not [*fields, *bound.orders, *bound.nouns]:
            self._members |= {"answer": "fields", "fields": ("notes",)}
        elif fields in ((), ("versions",)):
            self._members |= self._rows_of_products()
        else:
            self._members |= {"answer": "fields", "fields": fields}
        if "notes" in self._members.get("fields", ()) and _WHOLE & self._words:
            self._members["limit"] = MAX_NOTES

    def _whether_of_products(self) -> dict[str, Any]:
        is_choice = all((len(self._kinds) > 1, "or" in self._words, len(self._products) == 1))
        return {"answer": "fields", "fields": ("kind",)} if is_choice else {"answer": "exists"}

    def _rows_of_products(self) -> dict[str, Any]:
        bound = self._bound
        conditions = {item.slot for item in bound.values} - {"product", "version", "channel"}
        if len(self._products) > 1 and (conditions or self._is_choice()):
            return {"answer": "list", **({"limit": 1} if bound.orders else {})}
        if self._members["find"] == "releases" or [*bound.orders, *self._fields]:
            return self._releases_of_products()
        is_whether = conditions or "channel" in self._slots
        return {"answer": "exists" if is_whether and "all" not in bound.flags else "fields"}

    def _is_choice(self) -> bool:
        """Whether one of the products is asked for: "which of A and B is newer"."""
        is_which = all((self._order_of in ("newest", "oldest"), self._first == "which", not self._bound.nouns))
        is_either = bool(self._bound.orders) and any(item.joint == "or" for item in self._products)
        return any((is_which, is_either, self._order_of in ("releases", "platforms")))

    def _releases_of_products(self) -> dict[str, Any]:
        bound, version = self._bound, self._slots.get("version", Values())
        if version.any and not bound.orders:
            return {"find": "releases", "answer": "fields", "fields": ("published_at",)}
        if bound.orders and len(self._products) > 1:
            return {"find": "products", "answer": "fields", "fields": ("versions",)}
        singular = {"version", "release", "build", "update", "number"}
        is_singular = singular & {bound.words[noun.end - 1] for noun in self._releases}
        several = [*self._fields, *bound.times, *version.all, *((_EACH | {"list"}) & self._words)]
        is_one = not several and "limit" not in self._members
        one = {"limit": 1, "order": self._order_of or "newest"}
        return {"find": "releases", **(one if is_one and (bound.orders or is_singular) else {})}

    def _in_notes(self) -> None:
        """Unknown words of a question about what changed are looked for in the notes."""
        about_notes = "notes" in self._fields
        is_asked = about_notes or (not self._asks_whether and bool(self._releases or "published_at" in self._fields))
        is_open = "version" not in self._slots or self._asks_whether
        if not all((self._unused, is_asked, is_open, len(self._products) == 1, "newer" not in self._bound.flags)):
            return
        terms = tuple(terms_of(" ".join(self._unused))[:6])
        self._slots["text"] = Values(all=terms) if self._asks_whether else Values(any=terms)
        self._members |= {"find": "releases", "answer": "exists" if self._asks_whether else "fields"}
        self._members |= {"fields": ("notes",), "order": "title", "limit": None}
        self._recognition.unused, self._recognition.unknown = [], ""

    def _limit(self) -> None:
        """How many are meant where the question gives no number."""
        members, order = self._members, self._order_of
        if not order or "limit" in members:
            return
        is_of_releases = members["find"] == "releases"
        is_by_number = order in ("releases", "platforms", "products")
        if is_by_number and not is_of_releases:
            members["limit"] = 1
        elif all((order == "newest", "answer" not in members, self._is_of_each())):
            members |= {"find": "products", "answer": "fields", "fields": ("versions",)}
        elif not any((is_by_number, order == "title", self._products, members.get("when") == "last")):
            members["limit"] = MAX_PLURAL if self._is_plural() and not is_of_releases else 1

    def _is_of_each(self) -> bool:
        """Whether the newest release of each product is meant."""
        is_each = bool(self._bound.by) or bool(_EACH & self._words)
        if self._members["find"] != "releases":
            return is_each and self._is_extreme_channel()
        nouns = {self._bound.words[noun.end - 1] for noun in self._releases}
        return any((is_each, len(self._products) > 1, "versions" in nouns and not self._products))

    def _is_plural(self) -> bool:
        if {"was", "is"} & {*self._bound.words[:6]} or "one" in self._words:
            return False
        nouns = [*self._bound.of("kind"), *self._bound.nouns]
        return any(self._bound.words[noun.end - 1].endswith("s") for noun in nouns)

    def set(self, **members: Any) -> None:
        """Set members of the filter."""
        self._members |= members

    @property
    def bound(self) -> Bound:
        """What the question's words are bound to."""
        return self._bound

    @property
    def has_products(self) -> bool:
        """Whether the question names products."""
        return bool(self._products)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the question asks for."""
        return tuple(self._fields)

    @property
    def asks_whether(self) -> bool:
        """Whether the answer is Yes or No."""
        return self._asks_whether


_FORMS: tuple[tuple[Callable[[_Builder], object], Callable[[_Builder], None]], ...] = (
    (
        lambda it: it.counts_by_order,
        lambda it: it.set(answer="breakdown", by=it.counts_by_order[0], find="products", order="title"),
    ),
    (lambda it: it.bound.answer == "exists", lambda it: it.set(answer="exists")),
    (lambda it: it.wants_newest_of_channels, lambda it: it.set(answer="fields", fields=("channels",), order="title")),
    (_Builder.is_newer, _Builder.newer),
    (_Builder.is_breakdown, lambda it: it.set(answer="breakdown", by=it.bound.by)),
    (_Builder.is_count, _Builder.count),
    (lambda it: it.bound.answer == "compare" and len(it.bound.of("product")) > 1, _Builder.compare),
    (lambda it: it.bound.answer == "count" and it.fields, lambda it: it.set(answer="fields", fields=it.fields)),
    (lambda it: it.has_products, _Builder.about_products),
    (lambda it: it.asks_whether, lambda it: it.set(answer="exists")),
)
"""The forms of answers, with what they are chosen by; the first that fits is taken."""


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")
