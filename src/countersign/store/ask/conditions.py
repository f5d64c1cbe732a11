"""Bind the items of a question to each other, from left to right. An item is a word or phrase with a meaning. A slot is
a condition of the filter, such as the platform. "not" negates the next slot, "or" joins two values of a slot, and
"only" restricts the platform or channel beside it.

Besides the slots of the filter there are classes of items. `answer`, `find`, `order`, `when`, `field`, `time` and
`number` become members of the filter, in key=value pairs also `limit` and `by`. `not`, `only`, `or`, `and` and `but`
bind values. `sort` orders a complete list. `each` makes the next slot the one to count by. `all` asks for everything
about a product. `titled` refers to words of the title. A `polite` request has the form of a yes/no question. The item
after `whatever` does not matter. A `guard` changes the meaning and is not bound. `beyond` asks for something that no
catalog contains.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from countersign.store.ask.lexicon import LISTS, WordToken
from countersign.store.ask.scope import AUXILIARIES, QUESTION_WORDS, SENTENCE_ENDS, SLOT_OF_FIELD, Item, Scope
from countersign.store.catalog.filter import KNOWN, SLOTS, Values

MAX_NUMBER = 100
MULTIPLE = frozenset(["platform", "channel", "tag", "text", "title"])
"""Slots for which a product can have several values. If a question lists several values, the product must have all
values."""
_OF_SETS = frozenset(SLOTS) - {"product", "version", "text", "title"}
"""The slots whose conditions are true of many products."""
_SINGLE_SLOTS = [{slot} for slot in KNOWN]
_OR_SLOTS = _OF_SETS | {"time"}
_COUNTED = _OF_SETS | {"find", "order", "sort"}
"""The slots of items that a number of results is beside."""
_SIGNS = dict.fromkeys(LISTS["newer"], ">") | dict.fromkeys(LISTS["older"], "<") | {">=": ">=", "<=": "<="}


class Bound:
    """The bound items of a question. `found` maps each slot or class to its items. `values` contains the items that are
    conditions, in the order of the question."""

    def __init__(self, tokens: Sequence[WordToken], items: Sequence[Item]) -> None:
        self.words = [token.word for token in tokens]
        self._scope = Scope(tokens, items)
        self.sentence = self._scope.question
        self.found: defaultdict[str, list[Item]] = defaultdict(list)
        self.values: list[Item] = []
        self.nouns: list[Item] = []
        self.limit: int | None = None
        self.by = self.when = ""
        self.used: set[str] = set()
        self.has_unbound_not = False
        self._items, self._at = _without_irrelevant(self._scope.items()), 0
        self._names_things = any(item.slot == "product" for item in self._items)
        self._only: set[str] = set()
        self._is_negated, self._negated_slot, self._joint, self._joint_at = False, "", "", 0
        self._read()
        self.orders, self.times = [*self.found["sort"], *self.found["order"]], self.found["time"]
        self.answer = self.found["answer"][0].value if self.found["answer"] else ""
        guards = [*self.found["guard"], *self.found["step"]]
        self.guards: list[str] = [" ".join(self.words[item.start : item.end]) for item in guards]
        self._finish()

    def _read(self) -> None:
        handlers = {
            "not": self._not, "denied": self._negate_preceding, "included": self._drop_channel,
            "only": self._only_beside, "or": self._or, "and": self._or, "but": self._but,
            "find": self._find, "when": self._when,
            "newer": self._require_newer, "step": self._step, "number": self._number,
            **dict.fromkeys(SLOTS, self._value), "product": self._product,
        }  # fmt: skip
        end = 0
        for at, item in enumerate(self._items):
            self._at = at
            if not SENTENCE_ENDS.isdisjoint(self.words[end : item.start]):
                self._but(item)
            self._report_or(item)
            end = item.end
            if self._is_each(item):
                self.by = SLOT_OF_FIELD[item.value]
            elif self.words[item.start] == "whose" and item.start not in (0, self.sentence.start):
                self._but(item)
            elif item.slot in handlers:
                handlers[item.slot](item)
            else:
                self.found[item.slot].append(item)

    def _report_or(self, item: Item) -> None:
        """Report an "or" between different slots, which a filter cannot express, as in "Free or for Linux"."""
        is_first = item.slot in _OR_SLOTS and not (self.found["time"] if item.slot == "time" else self.of(item.slot))
        is_joined = self._joint == "or" and self.words[self._joint_at] == "or" and bool(self.values)
        if is_first and is_joined and not self._is_negated:
            self.found["guard"].append(Item("guard", "or", self._joint_at, self._joint_at + 1))

    def _is_each(self, item: Item) -> bool:
        """Return whether the item is the field to count by: it directly follows "each"."""
        is_field = item.slot in ("field", "find") and item.value in SLOT_OF_FIELD
        return is_field and any(item.start - each.end in (0, 1) for each in self.found["each"][-1:])

    def _finish(self) -> None:
        """Bind what depends on the complete question."""
        self._split()
        self.guards += ["how many"] if [item.value for item in self.found["answer"]].count("count") > 1 else []
        self._read_end()
        self.found["beyond"] += [Item("beyond", "the future", 0, 0)] if self._is_of_future() else []
        for item in self.of("text") if self.found["titled"] else ():
            item.slot = "title"
        self.guards += ["most"] if "most" in self.words and not self.orders else []

    def _read_end(self) -> None:
        """Read a question at the end of a statement, as in "Keyturn is free, right?"."""
        tail = [*filter("?".__ne__, self.words)][-3:]
        is_statement = self.words[-1:] == ["?"] and QUESTION_WORDS.isdisjoint(self.words[slice(*self.sentence)])
        if is_statement and not LISTS["ends of statements"].isdisjoint(tail[-1:]):
            self.answer = "exists"
        if all((tail[:1] == [","], AUXILIARIES & {*tail[1:2]}, tail[2:] != ["you"])):
            # "It isn't free, is it?" asks whether the product is free, so the "not" is dropped.
            self.answer, self.has_unbound_not = "exists", False
            for item in self.values:
                item.is_negated = False

    def _is_of_future(self) -> bool:
        """Return whether the question is like "Will it come to Linux?" or "When does it come out?"."""
        first, second, *_ = [*self.words[self.sentence.start :], "", ""]
        if first == "when" and second in LISTS["present tense"]:
            return not LISTS["coming"].isdisjoint(self.words)
        return first == "will" and {"you", "run", "work"}.isdisjoint(self.words)

    def _split(self) -> None:
        """Count by the slot of the listed values, as in "Split into games, apps and tools"."""
        end = max([each.end for each in self.found["each"]], default=len(self.words))
        listed = [value for value in self.values if value.start >= end]
        if len(listed) > 1 and {value.slot for value in listed} in _SINGLE_SLOTS:
            self.by, self.values = listed[0].slot, [value for value in self.values if value.start < end]

    def _not(self, item: Item) -> None:
        # "Out of beta" is not a beta, but "games out of this studio" are of the studio.
        if self.words[item.start] != "out" or "channel" in self._slots_after(item, 1):
            self._negate(item)

    def _negate(self, item: Item) -> None:
        word, is_first = self.words[item.start], item.start == self.sentence.start
        if (self._is_negated and not self._negated_slot) or self.words[item.end : item.end + 1] == ["("]:
            # "Except those without …" is a double negation; "not (A and B)" negates several conditions together.
            self.found["guard"].append(item)
        # "Isn't it free?" asks whether the product is free.
        elif not (is_first and word in AUXILIARIES):
            self._is_negated, self._negated_slot, self._joint = True, "", ""
            self.has_unbound_not |= self.sentence.has(item) or self._scope.limits(item)

    def _negate_preceding(self, _item: Item) -> None:
        """Negate the preceding values, as in "Betas left out"."""
        for value in reversed(self.values):
            if value.slot != self.values[-1].slot:
                break
            value.is_negated = True

    def _require_newer(self, _item: Item) -> None:
        """Ask for what came after the preceding version: "I have 3.9.2. What has changed since then?"."""
        for version in self.of("version"):
            version.value = f">{str(version.value).lstrip('<>=')}"

    def _step(self, item: Item) -> None:
        """Ask for the release beside a version that is named before: "I have 2.3.0. Which version came before it?"."""
        self.found["step"].append(item)
        versions = [at for at, value in enumerate(self.values) if value.slot == "version"]
        if versions and {"number", "version"}.isdisjoint(self._slots_after(item, 1)):
            self._version(self.values.pop(versions[0]))

    def _drop_channel(self, _item: Item) -> None:
        """Remove the condition on the channel, as in "Betas included"."""
        while self.values and self.values[-1].slot == "channel":
            self.values.pop()

    def _only_beside(self, item: Item) -> None:
        """Bind "only" to the platforms or channels that follow ("only run on iOS"), or else to the preceding ones.
        Ignore it if it refers to the asker ("I just got a Mac"), or to things named before ("only those")."""
        last = self._value_before(item)
        beside = (*self._slots_after(item, 2), *(each.slot for each in last))
        if self._is_negated:
            # "Not only for Windows" means that Windows is not the only platform.
            self.found["guard"].append(item)
        if not self._is_beside_topic(item):
            self._only |= {*[slot for slot in beside if slot in ("platform", "channel")][:1]}

    def _value_before(self, item: Item) -> list[Item]:
        """Return the preceding value in the same sentence; it must be beside "only", but not beside "nowhere else"."""
        last = [each for each in self.values[-1:] if item.value == "after" or each.end >= item.start - 1]
        return [each for each in last if SENTENCE_ENDS.isdisjoint(self.words[each.end : item.start])]

    def _slots_after(self, item: Item, count: int) -> list[str]:
        """Return the slots of the next items."""
        return [each.slot for each in self._items[self._at + 1 : self._at + 1 + count]]

    def _is_beside_topic(self, item: Item) -> bool:
        before, after = self.words[max(0, item.start - 3) : item.start], self.words[item.end : item.end + 2]
        is_aside = self.words[item.start] == "just" and not (self.sentence.has(item) or after[:1] in (["for"], ["on"]))
        return is_aside or not (LISTS["named before"].isdisjoint(after) and LISTS["askers"].isdisjoint(before))

    def _or(self, item: Item) -> None:
        if self.words[item.start] == "too" and self.values and self.values[-1].slot == "channel":
            self._drop_channel(item)  # "betas too"
        else:
            self._joint, self._joint_at = item.slot, item.start

    def _but(self, item: Item) -> None:
        if self._is_negated and not self._negated_slot and self.words[item.start - 1] in LISTS["named before"]:
            return  # "except those that run on Linux"
        self._is_negated, self._negated_slot, self._joint = False, "", ""

    def _find(self, item: Item) -> None:
        # "no Linux version" negates the platform, not the releases. "a Linux version" also refers to the platform.
        if ("platform", item.start) in [(last.slot, last.end) for last in self.values[-1:]] and not self.of("product"):
            return
        if not (item.value == "releases" and [*self.nouns, *self.values] and self._denies_releases(item)):
            self.nouns.append(item)

    def _when(self, item: Item) -> None:
        if not self._denies_releases(item) and self.when in ("", "any"):
            self.when = item.value

    def _denies_releases(self, item: Item) -> bool:
        """Return whether "not" refers to releases: to all releases, or to the releases of the channel that follows, as
        in "never released as stable"."""
        is_denied = self._is_negated and not self._negated_slot
        if is_denied and {"channel", "platform"}.isdisjoint(self._slots_after(item, 1)):
            self.when, self._is_negated, self.has_unbound_not = "none", False, False
        return is_denied

    def _number(self, item: Item) -> None:
        if _is_small(item) and self._counts_results(item):
            self.limit = max(1, int(item.value))
        elif not _is_small(item) or (self.of("product") and self.words[item.start] == item.value):
            self._version(item)
        elif not self._names_things:
            # A number that counts nothing known; but "compare the two" counts the products.
            self.found["guard"].append(item)

    def _counts_results(self, item: Item) -> bool:
        """Return whether the number is beside what it counts or what orders the results, as in "5 free games", "the
        newest 3" and "top 5". In "Which of the two is free?" it is not."""
        at, following = self._at, self.words[item.end : item.end + 1]
        beside = [each.slot for each in self._items[max(0, at - 1) : at] if each.end == item.start]
        if AUXILIARIES.isdisjoint(following):
            beside += [each.slot for each in self._items[at + 1 : at + 2] if each.start <= item.end + 1]
        before = self.words[max(0, item.start - 2) : item.start]
        return self.limit is None and not (_COUNTED.isdisjoint(beside) and LISTS["counting"].isdisjoint(before))

    def _version(self, item: Item) -> None:
        """Add a condition on the version, or on the version before or after it, as in "right before 2.9.0"."""
        step = self.found.pop("step", [])[-1:]
        compared = f"{step[0].value}{item.value}" if step else self._signed_version(item)
        if step:
            self.limit = 1
            order = {"<": "newest", ">": "oldest"}[step[0].value]
            self.found["order"].append(Item("order", order, step[0].start, step[0].end))
        self._value(Item("version", compared, item.start, item.end))

    def _signed_version(self, item: Item) -> str:
        """Return the version, preceded by `>` or `<` if the words before it express a comparison."""
        before = self.words[max(0, item.start - 4) : item.start]
        is_between = before[-1:] == ["and"] and "between" in self.words[max(0, item.start - 6) : item.start]
        if is_between or before[-1:] in (["to"], ["until"]):
            for other in self.of("version"):
                other.value = f">{other.value.lstrip('<>')}"
            return f"<={item.value}"
        compared = [word for word in before if word in _SIGNS]
        if compared:
            self.used |= {*compared, "than"}
            self.found["guard"] = [each for each in self.found["guard"] if self.words[each.start] not in self.used]
            return f"{_SIGNS[compared[-1]]}{item.value}"
        return str(item.value)

    def _product(self, item: Item) -> None:
        tags = [last for last in self.values[-1:] if last.slot == "tag"]
        # "The demo of Star Ledger" is another product.
        self.found["guard"] += [tag for tag in tags if self.words[tag.end : item.start] in (["for"], ["of"])]
        self._value(item)

    def _value(self, item: Item) -> None:
        is_joined = self._joint == "or" and self.values[-1:] and self.values[-1].end == self._joint_at
        if self._negated_slot not in ("", item.slot) and not is_joined:
            self._is_negated = False
        # In "You won't know X. What is it?", the negation does not refer to the product.
        is_aside = item.slot == "product" and not self.sentence.has(item)
        item.is_negated |= self._is_negated and not is_aside
        item.joint = self._joint
        self.has_unbound_not &= not item.is_negated
        self._negated_slot, self._joint = item.slot, ""
        self.values += self._each_of(item)

    def _each_of(self, item: Item) -> list[Item]:
        """Return the values of the item: "every desktop system" has all of the values of "desktop", not one of them."""
        is_of_all = not LISTS["all"].isdisjoint(self.words[max(0, item.start - 2) : item.start])
        texts = item.value.split("|") if is_of_all and item.slot == "platform" else [item.value]
        return [dataclasses.replace(item, value=text) for text in texts]

    def of(self, slot: str) -> list[Item]:
        """Return the values of a slot."""
        return [item for item in self.values if item.slot == slot]

    def slots(self) -> dict[str, Values]:
        """Return the conditions of all slots."""
        slots = {slot: _values(slot, self.of(slot)) for slot in SLOTS if self.of(slot)}
        for slot in self._only & slots.keys():
            named = (*slots[slot].any, *slots[slot].all)
            others = [each for each in KNOWN[slot] if each not in named] if named else []
            slots[slot] = replace(slots[slot], none=tuple(dict.fromkeys((*slots[slot].none, *others))))
        return slots


def _without_irrelevant(items: Sequence[Item]) -> list[Item]:
    """Return the items without those that do not matter: "irrespective of the publisher"."""
    return [item for before, item in pairwise([Item("", "", 0, 0), *items]) if before.slot != "whatever"]


def _is_small(number: Item) -> bool:
    return number.value.isdecimal() and int(number.value) <= MAX_NUMBER


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
