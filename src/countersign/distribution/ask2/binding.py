"""The items of a question bound to each other from left to right: "not" to the slot that follows, "or" between two
values of a slot, "only" to the platform or channel beside it.

The classes of items beside the slots of the filter:

    answer, find, order, sort, when, field, time, number    members of the filter
    not, only, or, and, but                                 how values are bound
    title                                                   the next words are words of the title
    each                                                    the next slot is what is counted by
    all                                                     everything about a product is asked for
    guard                                                   changes the meaning, and is bound to nothing here
    beyond                                                  asks for what no catalog holds
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from countersign.distribution.ask2.filter import KNOWN, SLOTS, Values, Where
from countersign.distribution.ask2.lexicon import Token
from countersign.distribution.ask2.recognition import SENTENCE_ENDS, Item, question_in

MAX_NUMBER = 100
AUXILIARIES = frozenset(
    "is are was were does do did has have had can could isn't aren't doesn't don't didn't hasn't haven't wasn't can't"
    " any will would am".split()
)
"""What a question of Yes and No begins with."""
_MULTIPLE = frozenset(["platform", "channel", "tag", "text", "title"])
"""Slots of which a product has several values: named side by side, all are meant."""
_SINGLE = frozenset(["kind", "access", "org", "license", "product"])
_ABOUT_ANSWER = frozenset(["find", "order", "sort", "field", "answer", "guard", "when", "each"])
"""What only the question itself says, where it names what it is about."""
_OWNERS = frozenset("i i've we we've he she my our office has have got can".split())
"""Before "only" they say what somebody has, not what a product is limited to."""
_SLOT_OF_FIELD = {"platforms": "platform", "channels": "channel", "tags": "tag", "license": "license",
    "access": "access", "kind": "kind", "org": "org"}  # fmt: skip
_PLATFORM_NOUNS = frozenset(["platforms", "systems", "devices", "platform"])
_ABOVE = frozenset(["newer", "later", "higher", "above", "after", "since", "beyond"])
_BELOW = frozenset(["older", "earlier", "lower", "below", "before", "pre", "prior"])


class Binding:
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
        self.limit: int | None = None
        self.answer = self.by = self.when = self.sort = ""
        self.wants_all = False
        self.is_tag_question = self._is_tag_question()
        self._tokens = tokens
        self._items = self._of_question(items)
        self._only: list[int] = []
        self._is_negated, self._negated_slot, self._joint = False, "", ""
        self._in_title = self._counts_by = False
        self._read()

    def _is_tag_question(self) -> bool:
        """Whether it ends like "…, is it?": then Yes and No are of what is before, without its "not"."""
        tail = [word for word in self.words[-4:] if word != "?"]
        is_tail = len(tail) >= 3 and tail[-3] == "," and tail[-2] in AUXILIARIES
        return is_tail and tail[-1] in ("it", "there", "they", "that")

    def _of_question(self, items: Sequence[Item]) -> list[Item]:
        """Without what the asker's own sentences say of a slot that the question says too."""
        slots = {item.slot for item in items if self.sentence.has(item)} & (_MULTIPLE | _SINGLE)
        if slots:
            slots |= _ABOUT_ANSWER
        return [item for item in items if item.slot not in slots or self.sentence.has(item)]

    def _read(self) -> None:
        handlers: dict[str, Callable[[Item], None]] = {
            "not": self._not, "only": self._only_beside, "or": self._or, "and": self._or, "but": self._but,
            "title": self._title, "each": self._each, "all": self._all, "guard": self._guard,
            "beyond": lambda item: self.beyond.append(item.value), "answer": self._answer, "find": self._find,
            "sort": self._sort, "order": self.orders.append, "when": self._when, "time": self.times.append,
            "field": self._field, "number": self._number,
        }  # fmt: skip
        end = 0
        for item in self._items:
            self._between(self.words[end : item.start], item)
            handlers.get(item.slot, self._value)(item)
            end = item.end

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

    def _not(self, item: Item) -> None:
        # "Isn't it free?" asks whether it is.
        asks = item.start == self.sentence.start and self.words[item.start] in AUXILIARIES
        self._is_negated = not asks and not self.is_tag_question
        self._negated_slot = self._joint = ""

    def _only_beside(self, item: Item) -> None:
        if not _OWNERS & {*self.words[max(0, item.start - 3) : item.start]}:
            self._only.append(self._items.index(item))

    def _or(self, item: Item) -> None:
        self._joint = item.slot

    def _but(self, _item: Item) -> None:
        self._is_negated = False
        self._negated_slot = self._joint = ""

    def _title(self, _item: Item) -> None:
        self._in_title = True

    def _each(self, _item: Item) -> None:
        self._counts_by = True

    def _all(self, _item: Item) -> None:
        self.wants_all = True

    def _guard(self, item: Item) -> None:
        self.guards.append(" ".join(self.words[item.start : item.end]))

    def _answer(self, item: Item) -> None:
        self.answer = self.answer or item.value

    def _sort(self, item: Item) -> None:
        self.sort = item.value

    def _find(self, item: Item) -> None:
        if item.value != "releases" or not self._is_negated:
            self.nouns.append(item)
            return
        beside = self.values[-1] if self.values and self.values[-1].end == item.start else None
        if beside is not None and beside.slot in ("platform", "channel"):
            # "No Linux version": the platform is denied, not its releases.
            self.denied_releases.append(item)
        elif any(value.slot == "kind" for value in self.values):
            self.when, self._is_negated = "none", False
        else:
            self.nouns.append(item)

    def _when(self, item: Item) -> None:
        if self._is_negated:
            self.when, self._is_negated = "none", False
        elif self.when in ("", "any"):
            self.when = item.value

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
                return f"{sign}{item.value}"
        is_between = before[-1:] == ["and"] and "between" in self.words[max(0, item.start - 6) : item.start]
        if not is_between and before[-1:] not in (["to"], ["until"]):
            return str(item.value)
        for other in self.values:
            if other.slot == "version" and not other.value.startswith((">", "<")):
                other.value = f">{other.value}"
        return f"<={item.value}"

    def _value(self, item: Item) -> None:
        if item.slot == "quoted" or (item.slot == "text" and self._in_title):
            item.slot = "title" if self._in_title else "text"
        if self._counts_by and item.slot in ("kind", "platform", "channel", "org"):
            self.by, self._counts_by = item.slot, False
            return
        if self._is_negated and self._negated_slot not in ("", item.slot) and self._joint != "or":
            self._is_negated = False
        item.is_negated, item.joint = self._is_negated, self._joint
        self._negated_slot, self._joint = item.slot, ""
        self.values.append(item)

    def of(self, slot: str) -> list[Item]:
        """The values of a slot."""
        return [item for item in self.values if item.slot == slot]

    def where(self) -> Where:
        """The conditions of all slots."""
        slots = {slot: _values(slot, self.of(slot)) for slot in SLOTS if self.of(slot)}
        for place in self._only:
            self._narrow(slots, place)
        return Where(**slots)

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
    are_alternatives = any(item.joint == "or" for item in items)
    for item in items:
        texts = str(item.value).split("|")
        lists[_place(slot, item, texts, are_alternatives=are_alternatives)] += texts
    if len(lists["all"]) == 1 and not lists["any"] and slot != "version":
        lists["any"], lists["all"] = lists["all"], []
    unique: dict[str, Any] = {name: tuple(dict.fromkeys(texts)) for name, texts in lists.items()}
    return Values(**unique)


def _place(slot: str, item: Item, texts: Sequence[str], *, are_alternatives: bool) -> str:
    if item.is_negated:
        return "none"
    if slot == "version":
        return "all" if texts[0].startswith((">", "<")) else "any"
    return "any" if len(texts) > 1 or are_alternatives or slot not in _MULTIPLE else "all"
