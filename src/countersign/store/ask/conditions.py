"""Bind the items of a question to each other, from left to right. An item is a word or phrase with a meaning. A slot is
a condition of the filter, such as the platform. "not" negates the next slot, "or" joins two values of a slot, and
"only" restricts the platform or channel beside it.

Besides the slots of the filter there are classes of items. `answer`, `find`, `order`, `when`, `field`, `time` and
`number` become members of the filter, in key=value pairs also `limit` and `by`. `not`, `only`, `or`, `and` and `but`
bind values. `sort` orders a complete list. `each` makes the next slot the one to count by. `all` asks for everything
about a product. `titled` refers to words of the title. A `polite` request has the form of a yes/no question. A
`guard` changes the meaning and is not bound. `beyond` asks for something that no catalog contains.
"""

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from countersign.store.ask.lexicon import WordToken
from countersign.store.ask.scope import AUXILIARIES, SENTENCE_ENDS, Item, Scope
from countersign.store.catalog.filter import KNOWN, SLOTS, Values

MAX_NUMBER = 100
MULTIPLE = frozenset(["platform", "channel", "tag", "text", "title"])
"""Slots for which a product can have several values. If a question lists several values, the product must have all
values."""
SLOT_OF_FIELD = {"platforms": "platform", "channels": "channel", "tags": "tag", "license": "license",
    "access": "access", "kind": "kind", "org": "org", "publishers": "org"}  # fmt: skip
_JOINED = frozenset(["kind", "platform", "access", "tag", "org", "license", "channel", "time"])
_OWNERS = frozenset(["i", "i've", "we", "we've", "he", "she", "my", "our", "office"])
"""Words before "only" that refer to what somebody has, not to a restriction of the product."""
_PLATFORM_NOUNS = frozenset(["platforms", "systems", "devices", "platform"])
_SIGNS = dict.fromkeys(["newer", "later", "higher", "above", "after", "since"], ">") | dict.fromkeys(
    ["older", "earlier", "lower", "below", "before", "pre", "prior"], "<"
)


class Bound:
    """The bound items of a question: `found` contains the items by slot or class, `values` the conditions in the
    order of the question."""

    def __init__(self, tokens: Sequence[WordToken], items: Sequence[Item]) -> None:
        self.words = [token.word for token in tokens]
        self._scope = Scope(tokens, items)
        self.sentence = self._scope.question
        self.found: defaultdict[str, list[Item]] = defaultdict(list)
        self.values: list[Item] = []
        self.nouns: list[Item] = []
        self.pairs: dict[str, Any] = {}
        self.limit: int | None = None
        self.by = self.when = ""
        self.used: set[str] = set()
        self.is_terse = bool(items) and all(item.is_pair or item.slot in ("and", "or") for item in items)
        self.has_unbound_not = False
        self._items = self._scope.items()
        self._only: set[str] = set()
        self._is_negated, self._negated_slot, self._joint = False, "", ""
        self._or_at = 0
        self._read()
        self.orders, self.times = [*self.found["sort"], *self.found["order"]], self.found["time"]
        self.answer = self.found["answer"][0].value if self.found["answer"] else ""
        guards = [*self.found["guard"], *self.found["step"]]
        self.guards = [" ".join(self.words[item.start : item.end]) for item in guards]
        self._end()

    def _read(self) -> None:
        handlers = {
            "not": self._not, "denied": self._denied, "included": self._included, "only": self._only_beside,
            "or": self._or, "and": self._or, "but": self._but, "find": self._find, "when": self._when,
            "number": self._number, "quoted": self._value,
            **dict.fromkeys(SLOTS, self._value),
        }  # fmt: skip
        end = 0
        for item in self._items:
            self._between(self.words[end : item.start], item)
            self._doubt_or(item)
            end = item.end
            if item.is_pair and item.slot not in (*SLOTS, "time"):
                self.pairs.setdefault(item.slot, []).append(int(item.value) if item.slot == "limit" else item.value)
            elif self._is_each(item):
                self.by = SLOT_OF_FIELD[item.value]
                self.found["each"].clear()
            elif self.words[item.start] == "whose" and item.start > self.sentence.start:
                self._but(item)
            elif item.slot in handlers:
                handlers[item.slot](item)
            else:
                self.found[item.slot].append(item)

    def _split(self) -> None:
        """Count by the slot of the listed values, as in "Split into games, apps and tools"."""
        end = max([each.end for each in self.found["each"]], default=len(self.words))
        following = [value for value in self.values if value.start >= end]
        slots = {value.slot for value in following}
        if len(following) > 1 and len(slots) == 1 and slots <= KNOWN.keys():
            self.by, self.values = slots.pop(), self.values[: -len(following)]
            self.found["each"].clear()

    def _doubt_or(self, item: Item) -> None:
        """Report an "or" between different slots, which a filter cannot express, as in "Free or for Linux"."""
        before = self.found["time"] if item.slot == "time" else self.of(item.slot)
        is_other = item.slot in _JOINED and not (before or item.is_pair or self._is_negated)
        if is_other and self.values and self._joint == "or" and self.words[self._or_at] == "or":
            self.found["guard"].append(Item("guard", "or", self._or_at, self._or_at + 1))

    def _is_each(self, item: Item) -> bool:
        """Whether the item is the field to count by: it directly follows "each"."""
        each = self.found["each"][-1:]
        is_field = item.slot in ("field", "find") and item.value in SLOT_OF_FIELD
        return is_field and [item.start] in [[last.end + more] for last in each for more in (0, 1)]

    def _end(self) -> None:
        """Bind what depends on the complete question."""
        self._split()
        begin = self.words[self.sentence.start : self.sentence.start + 1]
        tail = [word for word in self.words if word != "?"][-3:]
        if all((tail[:1] == [","], AUXILIARIES & {*tail[1:2]}, tail[2:] != ["you"])):
            # "It isn't free, is it?" asks whether the product is free, so the "not" is dropped.
            self.answer, self.has_unbound_not = "exists", False
            for item in self.values:
                item.is_negated = False
        if begin == ["will"] and not {"you", "run", "work"} & {*self.words}:
            self.found["beyond"].append(Item("beyond", "the future", 0, 0))
        if all((self.found["titled"], not self.of("title"))):
            # "Titled …" refers to the following words, or else to the preceding ones, as in: "rail" in the title.
            for item in self.of("text"):
                item.slot = "title"
        if all(("most" in self.words, not self.orders)):
            self.guards.append("most")

    def _between(self, words: Sequence[str], item: Item) -> None:
        """End a negated list or a sentence at the punctuation before the item."""
        ends_list = self._is_negated and self._negated_slot and "," in words and self._joint != "or"
        if ends_list or SENTENCE_ENDS & {*words}:
            self._but(item)

    def _not(self, item: Item) -> None:
        word, is_first = self.words[item.start], item.start == self.sentence.start
        if word == "no" and self.words[item.end : item.end + 1] in ([","], ["."], [";"]):
            # "No, I mean …" negates nothing; "iOS no" negates the words before it.
            self.found["guard"] += [] if is_first else [item]
        elif self._is_negated and not self._negated_slot:
            # "Except those without …" is a double negation.
            self.found["guard"].append(item)
        # "Isn't it free?" asks whether the product is free.
        elif not (is_first and word in AUXILIARIES):
            self._is_negated = True
            self.has_unbound_not |= self.sentence.has(item) or self._scope.limits(item)
            self._negated_slot = self._joint = ""

    def _denied(self, _item: Item) -> None:
        """Negate the preceding values, as in "Betas left out"."""
        for value in reversed(self.values):
            if value.slot != self.values[-1].slot:
                break
            value.is_negated = True

    def _included(self, _item: Item) -> None:
        """Remove the condition on the channel, as in "Betas included"."""
        while self.values and self.values[-1].slot == "channel":
            self.values.pop()

    def _only_beside(self, item: Item) -> None:
        """Bind "only" to the platforms or channels that follow ("only run on iOS"), or else to the preceding ones."""
        following, last = self._items[self._items.index(item) + 1 :][:2], self.values[-1:]
        beside = (*following, *self._directly_before(item))
        slots = [each.slot for each in beside if each.slot in ("platform", "channel")]
        if self._is_negated and [each.slot for each in following[:1]] == ["channel"]:
            # In "Not just stable ones", the channel is not a condition.
            following[0].slot, self._is_negated, self.has_unbound_not = "skip", False, False
            return
        if True in (self._is_negated, *map(attrgetter("is_negated"), last)):
            # "Not Windows only" means that Windows is not the only platform.
            self.found["guard"].append(item)
        if not self._is_of_asker(item):
            self._only |= {*slots[:1]}

    def _directly_before(self, item: Item) -> list[Item]:
        """The last value, if only one word is between it and the item, and no end of a sentence."""
        last = self.values[-1:]
        return [each for each in last if each.end >= item.start - 1 and self.words[each.end] not in SENTENCE_ENDS]

    def _is_of_asker(self, item: Item) -> bool:
        """Whether "only" refers to the asker ("I just got a Mac"), or to things named before ("only those")."""
        is_of_those = {"ones", "those", "these"} & {*self.words[item.end : item.end + 2]}
        is_aside = self.words[item.start] == "just" and not self.sentence.has(item)
        return is_aside or bool(is_of_those or _OWNERS & {*self.words[max(0, item.start - 3) : item.start]})

    def _or(self, item: Item) -> None:
        if self.words[item.start] == "too" and self.values and self.values[-1].slot == "channel":
            self._included(item)  # "betas too"
        else:
            self._joint, self._or_at = item.slot, item.start

    def _but(self, _item: Item) -> None:
        self._is_negated = False
        self._negated_slot = self._joint = ""

    def _find(self, item: Item) -> None:
        # "no Linux version" negates the platform, not the releases. "a Linux version" also refers to the platform.
        last = self.values[-1] if self.values else item
        if (last.slot, last.end) == ("platform", item.start) and not self.of("product"):
            return
        if not (item.value == "releases" and [*self.nouns, *self.values] and self._denies_releases(item)):
            self.nouns.append(item)

    def _when(self, item: Item) -> None:
        if not self._denies_releases(item) and self.when in ("", "any"):
            self.when = item.value

    def _denies_releases(self, item: Item) -> bool:
        """Whether "not" refers to releases: to all releases, or to the releases of the channel that follows, as in
        "never released as stable"."""
        is_denied = self._is_negated and not self._negated_slot
        following = self._items[self._items.index(item) + 1 :][:1]
        if is_denied and not (following and following[0].slot == "channel"):
            self.when, self._is_negated, self.has_unbound_not = "none", False, False
        return is_denied

    def _number(self, item: Item) -> None:
        if _PLATFORM_NOUNS & {*self.words[item.end : item.end + 4]}:
            self.found["guard"].append(item)
        elif self.words[max(0, item.start - 1) : item.start] == ["all"]:
            self.used.add(item.value)  # "Windows, macOS and Linux, all three"
        elif self.limit is None and item.value.isdecimal() and int(item.value) <= MAX_NUMBER:
            self.limit = max(1, int(item.value))
        else:
            self._version(item)

    def _version(self, item: Item) -> None:
        """Add a condition on the version, or on the version before or after it, as in "right before 2.9.0"."""
        step = self.found.pop("step", [])[-1:]
        for each in step:
            self.limit = 1
            self.found["order"].append(Item("order", {"<": "newest", ">": "oldest"}[each.value], each.start, each.end))
        compared = "".join(each.value for each in step) + str(item.value) if step else self._compared(item)
        self._value(Item("version", compared, item.start, item.end))

    def _compared(self, item: Item) -> str:
        """The version, preceded by `>` or `<` if the words before it express a comparison."""
        before = self.words[max(0, item.start - 4) : item.start]
        compared = [word for word in before if word in _SIGNS]
        if compared:
            self.used |= {*compared, "than"}
            self.found["guard"] = [each for each in self.found["guard"] if self.words[each.start] not in self.used]
            return f"{_SIGNS[compared[-1]]}{item.value}"
        is_between = before[-1:] == ["and"] and "between" in self.words[max(0, item.start - 6) : item.start]
        if not is_between and before[-1:] not in (["to"], ["until"]):
            return str(item.value)
        for other in self.of("version"):
            other.value = f">{other.value.lstrip('<>')}"
        return f"<={item.value}"

    def _value(self, item: Item) -> None:
        if item.slot in ("quoted", "text"):
            item.slot = "title" if self.found["titled"] else "text"
        if self._is_negated and self._negated_slot not in ("", item.slot) and self._joint != "or":
            self._is_negated = False
        # In "You won't know X. What is it?", the negation does not refer to the product.
        is_aside = item.slot == "product" and not self.sentence.has(item)
        item.is_negated |= self._is_negated and not is_aside
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
        for slot in self._only & slots.keys():
            named = (*slots[slot].any, *slots[slot].all)
            others = [each for each in KNOWN[slot] if each not in named] if named else []
            slots[slot] = replace(slots[slot], none=tuple(dict.fromkeys((*slots[slot].none, *others))))
        return slots


def _values(slot: str, items: Sequence[Item]) -> Values:
    lists: dict[str, list[str]] = {"any": [], "all": [], "none": []}
    is_multiple = slot in MULTIPLE and not any((item.joint, item.is_negated) == ("or", False) for item in items)
    for item in items:
        texts = str(item.value).split("|")
        is_all = texts[0].startswith((">", "<")) if slot == "version" else is_multiple and len(texts) == 1
        lists["none" if item.is_negated else "all" if is_all else "any"] += texts
    if all((len(lists["all"]) == 1, not lists["any"], slot != "version")):
        lists["any"], lists["all"] = lists["all"], []
    unique: dict[str, Any] = {name: tuple(dict.fromkeys(texts))[:12] for name, texts in lists.items()}
    return Values(**unique)
