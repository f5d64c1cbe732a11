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
FLAGS = ("each", "all", "sort", "newer", "same", "skip")
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
_ABOVE = frozenset(["newer", "later", "higher", "above", "after", "since", "beyond"])
_BELOW = frozenset(["older", "earlier", "lower", "below", "before", "pre", "prior", "preceded", "precedes"])
_BESIDES = frozenset(["besides", "other", "apart", "aside"])
_SOMETHING = frozenset(["anything", "something", "else", "any", "some", "anywhere"])
_STEPS = frozenset(["right", "just", "immediately", "directly", "preceded", "precedes"])
"""Before "before" and "after" of versions: the next one is meant."""


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
        value = int(item.value) if item.slot == "limit" else item.value
        self.pairs.setdefault(item.slot, []).append(value)

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
        elif self.of("kind") or "products" in [noun.value for noun in self.nouns]:
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
        slot = SLOT_OF_FIELD.get(item.value, "")
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
