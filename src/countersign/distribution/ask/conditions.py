"""The items of a question bound to each other from left to right: "not" to the slot that follows, "or" between two
values of a slot, "only" to the platform or channel beside it.

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
from typing import Any

from msgspec.structs import replace

from countersign.distribution.ask.items import SENTENCE_ENDS, Item, question_in
from countersign.distribution.ask.lexicon import Token
from countersign.distribution.catalog.filter import KNOWN, SLOTS, Values

MAX_NUMBER = 100
FLAGS = ("each", "all", "sort", "same", "skip")
"""Classes of words of which it counts whether the question has them."""
AUXILIARIES = frozenset(
    str.split(
        "is are was were does do did has have had can could isn't aren't doesn't don't didn't hasn't haven't"
        " wasn't can't any will would am"
    )
)
"""What a question of Yes and No begins with."""
_MULTIPLE = frozenset(["platform", "channel", "tag", "text", "title"])
"""Slots of which a product has several values: named side by side, all are meant."""
_ABOUT_ANSWER = frozenset(["find", "order", "sort", "field", "answer", "guard", "when", "each"])
"""What only the question itself says, where it names what it is about."""
_OWNERS = frozenset(str.split("i i've we we've he she my our office"))
"""Before "only" they say what somebody has, not what a product is limited to."""
SLOT_OF_FIELD = {"platforms": "platform", "channels": "channel", "tags": "tag", "license": "license",
    "access": "access", "kind": "kind", "org": "org"}  # fmt: skip
_PLATFORM_NOUNS = frozenset(["platforms", "systems", "devices", "platform"])
_ABOVE = frozenset(["newer", "later", "higher", "above", "after", "since"])
_BELOW = frozenset(["older", "earlier", "lower", "below", "before", "pre", "prior"])
_BESIDES = frozenset(["besides", "other", "apart", "aside"])
_SOMETHING = frozenset(["anything", "something", "else", "any", "some", "anywhere"])


class Bound:
    """What is bound after all items were read. `values` are the conditions, in the order of the question."""

    def __init__(self, tokens: Sequence[Token], items: Sequence[Item]) -> None:
        self.words = [token.word for token in tokens]
        self.sentence = question_in(tokens, items)
        self.values: list[Item] = []
        self.fields: list[str] = []
        self.orders: list[Item] = []
        self.nouns: list[Item] = []
        self.times: list[Item] = []
        self.guards: list[str] = []
        self.beyond: list[str] = []
        self.pairs: dict[str, Any] = {}
        self.limit: int | None = None
        self.answer = self.by = self.when = self.sort = ""
        self.flags: set[str] = set()
        self.used: set[str] = set()
        self.is_terse = bool(items) and all(item.is_pair or item.slot in ("and", "or") for item in items)
        self.has_unbound_not = False
        self._items = self._of_question(items)
        self._only: list[int] = []
        self._is_negated, self._negated_slot, self._joint = False, "", ""
        self._read()
        self._end()

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
        value = int(item.value) if item.slot == "limit" else item.value
        self.pairs.setdefault(item.slot, []).append(value)

    def _flag(self, item: Item) -> None:
        self.flags.add(item.slot)
        self.sort = item.value if item.slot == "sort" else self.sort

    def _end(self) -> None:
        """What only the whole question tells."""
        begin = self.words[self.sentence.start : self.sentence.start + 1]
        tail = [word for word in self.words if word != "?"][-3:]
        is_tag_question = tail[:1] == [","] and tail[1] in AUXILIARIES and tail[2] != "you"
        if is_tag_question:
            # "It isn't free, is it?": Yes and No are of what is before, without its "not".
            self.answer, self.has_unbound_not = "exists", False
            for item in self.values:
                item.is_negated = False
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

    def _titled(self, item: Item) -> None:
        """ "Titled …", or words that are before it: "rail" in the title."""
        last = self.values[-1] if self.values else Item("", "", -9, -9)
        if last.slot == "text" and item.start - last.end <= 2:
            last.slot = "title"
        else:
            self.flags.add("titled")

    def _not(self, item: Item) -> None:
        word, is_first = self.words[item.start], item.start == self.sentence.start
        before = {*self.words[max(0, item.start - 2) : item.start]}
        if word in _BESIDES and _SOMETHING & before:
            self.guards.append(word)
        if word == "no" and self.words[item.end : item.end + 1] in ([","], ["."], [";"]):
            # "No, I mean …" denies nothing; "iOS no" denies what is before it.
            self.guards += [] if is_first else [word]
        # "Isn't it free?" asks whether it is.
        elif not (is_first and word in AUXILIARIES):
            self._is_negated, self.has_unbound_not = True, True
            self._negated_slot = self._joint = ""

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
        elif item.value == "releases" and self._is_negated and not self._negated_slot and [*self.nouns, *self.values]:
            self._deny_releases(item)
        else:
            # Of "no Linux version" the platform is denied, not its releases.
            self.nouns.append(item)

    def _deny_releases(self, item: Item) -> None:
        """No release at all, or of "never released as stable" none in the channel that follows."""
        following = self._items[self._items.index(item) + 1 :][:1]
        if not (following and following[0].slot == "channel"):
            self.when, self._is_negated, self.has_unbound_not = "none", False, False

    def _when(self, item: Item) -> None:
        if self._is_negated and not self._negated_slot:
            self._deny_releases(item)
        elif self.when in ("", "any"):
            self.when = item.value

    def _field(self, item: Item) -> None:
        slot = SLOT_OF_FIELD.get(item.value, "")
        if "each" in self.flags and slot:
            self.by = slot
            self.flags.discard("each")
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
                self.used |= words & {*before}
                self.guards = [guard for guard in self.guards if guard not in words | {"than"}]
                return f"{sign}{item.value}"
        is_between = before[-1:] == ["and"] and "between" in self.words[max(0, item.start - 6) : item.start]
        if not is_between and before[-1:] not in (["to"], ["until"]):
            return str(item.value)
        for other in self.of("version"):
            other.value = f">{other.value.lstrip('<>')}"
        return f"<={item.value}"

    def _value(self, item: Item) -> None:
        if item.slot in ("quoted", "text"):
            item.slot = "title" if "titled" in self.flags else "text"
        if self._is_negated and self._negated_slot not in ("", item.slot) and self._joint != "or":
            self._is_negated = False
        item.is_negated |= self._is_negated
        item.joint = item.joint or self._joint
        self._is_negated &= not item.is_pair
        self.has_unbound_not &= not item.is_negated
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
