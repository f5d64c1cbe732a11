"""Determine what a question asks for, and the form of the answer.

Items, the words and phrases with a meaning, are bound to each other from left to right. A slot is a condition of the
filter, such as the platform. "not" negates the next slot, "or" joins two values of a slot, and "only" restricts the
platform or channel beside it.

Besides the slots of the filter there are classes of items. `answer`, `find`, `order`, `when`, `field`, `time` and
`number` become members of the filter, in key=value pairs also `limit` and `by`. `not`, `only`, `or`, `and` and `but`
bind values. `sort` orders a complete list. `each` makes the next slot the one to count by. `all` asks for everything
about a product. `titled` refers to words of the title. A `polite` request has the form of a yes/no question. The item
after `whatever` does not matter. A `guard` changes the meaning and is not bound. `beyond` asks for something that no
catalog contains.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import filterfalse, pairwise
from typing import Any, TypeVar

from msgspec.structs import replace

from countersign.store.ask.dates import EARLIEST, LATEST
from countersign.store.ask.lexicon import COURTESY, LISTS, WordToken
from countersign.store.ask.scope import AUXILIARIES, QUESTION_WORDS, SENTENCE_ENDS, SLOT_OF_FIELD, Item, Scope
from countersign.store.ask.word_lookup import Corrected, Recognition
from countersign.store.catalog.filter import KNOWN, SLOTS, Filter, Values, with_slots
from countersign.store.catalog.search import words as terms_of

T = TypeVar("T")
MAX_PLURAL = 10
"""The number of results for a request without a number, such as "the newest games"."""
MAX_NOTES = 50
OF_OTHERS = LISTS["of others"]
"""Words that begin a question that asks for something other than a list."""
_ALL = LISTS["all"]
_OF_RELEASES = frozenset(["product", "version", "channel"])
"""The slots of conditions that name a product's releases; the others restrict the products."""
_COUNTS = frozenset(["releases", "platforms", "products"])
"""The orders by a number."""
MAX_NUMBER = 100
MULTIPLE = frozenset(["platform", "channel", "tag", "text", "title"])
"""Slots for which a product can have several values. If a question lists several values, the product must have all
values."""
_OF_SETS = frozenset(SLOTS) - {"product", "version", "text", "title"}
"""The slots whose conditions are true of many products."""
_COUNTED = _OF_SETS | {"find", "order", "sort"}
"""The slots of items that a number of results is beside."""
_NEWEST_OF_EACH: dict[str, Any] = {"find": "products", "answer": "fields", "fields": ("versions",)}
_SIGNS = dict.fromkeys(LISTS["newer"], ">") | dict.fromkeys(LISTS["older"], "<") | {">=": ">=", "<=": "<="}


@dataclass(slots=True)
class Reading:
    """The interpretation of a question.

    `unused` contains the words that did not become part of the filter. `guards` contains words that change the meaning
    of the question in a way that the filter does not express. `beyond` contains words that ask for something that no
    catalog contains. `unknown` is a name that the catalog does not contain. `is_search` is true if words are searched
    for that may have another meaning. `beside` contains conditions that are stated beside the question.
    """

    filter: Filter
    unused: list[str] = field(default_factory=list[str])
    guards: list[str] = field(default_factory=list[str])
    beyond: list[str] = field(default_factory=list[str])
    unknown: str = ""
    corrected: list[Corrected] = field(default_factory=list[Corrected])
    is_about_text: bool = False
    is_search: bool = False
    beside: list[str] = field(default_factory=list[str])

    @property
    def is_whole(self) -> bool:
        """Whether the filter expresses every word that has a meaning."""
        return not (self.unused or self.guards or self.beyond or self.unknown)


class QuestionParser:
    """Binds the items of a question to each other, and builds the filter. `found` maps each slot or class to its items.
    `values` contains the items that are conditions, in the order of the question."""

    def __init__(self, tokens: Sequence[WordToken], recognition: Recognition) -> None:
        self.words = [token.word for token in tokens]
        scope = Scope(tokens, recognition.items)
        self._recognition, self.sentence, self.begin = recognition, scope.question, scope.begin
        self._beside = scope.beside()
        self.found: defaultdict[str, list[Item]] = defaultdict(list)
        self.values: list[Item] = []
        self.nouns: list[Item] = []
        self.limit: int | None = None
        self.by = self.when = ""
        self.has_unbound_not = False
        # "Irrespective of the publisher" makes the next item irrelevant.
        within = [Item("", "", 0, 0), *scope.items()]
        self._items, self._at = [item for before, item in pairwise(within) if before.slot != "whatever"], 0
        self._only: set[str] = set()
        self.signs: set[str] = set()
        self._is_negated, self._negated_slot, self._joint, self._joint_at = False, "", "", 0
        self._not_at = Item("", "", 0, 0)
        self._read()
        self.orders, self.times = [*self.found["sort"], *self.found["order"]], self.found["time"]
        self._all_words, self._first = {*self.words}, self._first_word()
        answers = [item.value for item in self.found["answer"]]
        self.answer = "".join(answers[:1])
        self.guards = self._words_of(self.found["guard"])
        self._is_unordered = all(("most" in self._all_words, not self.orders))
        self.found["beyond"] += [Item("beyond", "the future", 0, 0)] * self._is_of_future()
        for item in self.of("text") * bool(self.found["titled"]):
            item.slot = "title"
        self._fields = self._requested_fields()
        self._kinds = [item.start for item in self.of("kind")]
        self._subjects = [*self._kinds, *(noun.start for noun in self.nouns if noun.value in ("any", "products"))]
        self._slots: dict[str, Values] = {}
        self._products: list[Item] = []
        self._unused: list[str] = []
        self._order, self._is_search = "title", bool(self.of("text"))
        self._asks_whether = self._is_yes_no()
        self._read_end()

    def _read_end(self) -> None:
        """Read a question at the end of a statement, as in "Keyturn is free, right?" and "It isn't free, is it?"."""
        is_statement = self.words[-1:] == ["?"] and self._first not in QUESTION_WORDS
        if is_statement and not LISTS["ends of statements"].isdisjoint(self.words[-3:-1]):
            self.answer = "exists"
        if is_statement and self.words[-4:-3] == [","] and self.words[-3] in AUXILIARIES:
            self.has_unbound_not = False
            for item in self.values:
                item.is_negated = False

    def _is_of_future(self) -> bool:
        """Return whether the question is like "Will it come to Linux?" or "When does it come out?"."""
        second = self.words[self.sentence.start + 1 :][:1]
        is_coming = not (LISTS["present tense"].isdisjoint(second) or LISTS["coming"].isdisjoint(self.words))
        is_open = {"you", "run", "work"}.isdisjoint(self.words)
        return (self._first == "when" and is_coming) or (self._first == "will" and is_open)

    def _read(self) -> None:
        handlers = {
            "not": self._not, "only": self._only_beside, "or": self._or, "and": self._or, "but": self._but,
            "find": self._find, "when": self._when, "number": self._number, "beyond": self._deny_beyond,
            **dict.fromkeys(SLOTS, self._value),
        }  # fmt: skip
        end = 0
        for at, item in enumerate(self._items):
            self._at = at
            is_whose = all((self.words[item.start] == "whose", item.start not in (0, self.sentence.start)))
            if any((is_whose, SENTENCE_ENDS & {*self.words[end : item.start]})):
                self._but(item)
            self._report_or(item)
            end = item.end
            each = [last.end for last in self.found["each"][-1:]]
            is_field = item.slot in ("field", "find") and item.value in SLOT_OF_FIELD
            if is_field and not {item.start, item.start - 1}.isdisjoint(each):
                self.by = SLOT_OF_FIELD[item.value]
            elif item.slot in handlers:
                handlers[item.slot](item)
            elif not is_whose:
                self.found[item.slot].append(item)

    def _report_or(self, item: Item) -> None:
        """Report an "or" between different slots, which a filter cannot express, as in "Free or for Linux"."""
        is_first = item.slot == "time" or (item.slot in _OF_SETS and not self.of(item.slot))
        is_joined = self._joint == "or" and self.words[self._joint_at] == "or" and bool(self.values)
        if is_first and is_joined and not self._is_negated:
            self.found["guard"].append(Item("guard", ".", self._joint_at, self._joint_at + 1))

    def _not(self, item: Item) -> None:
        word, is_first = self.words[item.start], item.start == self.sentence.start
        is_double, is_of_group = all((self._is_negated, not self._negated_slot)), self.words[item.end :][:1] == ["("]
        if any((is_double, is_of_group, self.words[item.start - 1 : item.end] == ["there", "no"])):
            # "Except those without …" is a double negation; "not (A and B)" negates several conditions together. "Is
            # there no …" can be answered in two ways.
            self.found["guard"].append(item)
        # "Isn't it free?" asks whether the product is free.
        elif not (is_first and (word in AUXILIARIES or self.words[item.end : item.end + 1] == [","])):
            self._is_negated, self._negated_slot, self._joint, self._not_at = True, "", "", item
            self.has_unbound_not |= item.start in self.sentence

    def _only_beside(self, item: Item) -> None:
        """Bind "only" to the platforms or channels that follow ("only run on iOS"), or else to the preceding ones.
        Ignore it if it refers to the asker ("I just got a Mac"), or to things named before ("only those")."""
        if self._is_negated:
            # "Not only for Windows" means that Windows is not the only platform.
            self.found["guard"].append(item)
        before, after = self.words[max(0, item.start - 3) : item.start], self.words[item.end : item.end + 2]
        is_within = any((self.words[item.start] != "just", item.start in self.sentence, after[:1] in (["for"], ["on"])))
        if not all((is_within, LISTS["named before"].isdisjoint(after), LISTS["askers"].isdisjoint(before))):
            return
        # The preceding value must be beside "only", but not beside "nowhere else".
        last = [each for each in self.values[-1:] if any((item.value == "after", each.end >= item.start - 1))]
        last = [each.slot for each in last if SENTENCE_ENDS.isdisjoint(self.words[each.end : item.start])]
        self._only |= {*[slot for slot in (*self._slots_after(2), *last) if slot in ("platform", "channel")][:1]}

    def _slots_after(self, count: int) -> list[str]:
        """Return the slots of the next items."""
        return [each.slot for each in self._items[self._at + 1 : self._at + 1 + count]]

    def _or(self, item: Item) -> None:
        self._joint, self._joint_at = item.slot, item.start

    def _but(self, item: Item) -> None:
        if self._is_negated and not self._negated_slot and self.words[item.start - 1] in LISTS["named before"]:
            return  # "except those that run on Linux"
        # "Free, or which are for Linux" joins two conditions.
        joint = self._joint if self.words[item.start - 1] == "or" else ""
        self._is_negated, self._negated_slot, self._joint = False, "", joint

    def _find(self, item: Item) -> None:
        # "no Linux version" negates the platform, not the releases. "a Linux version" also refers to the platform.
        if ("platform", item.start) in [(last.slot, last.end) for last in self.values[-1:]] and not self.of("product"):
            return
        if not (item.value == "releases" and [*self.nouns, *self.values] and self._denies_releases(item)):
            self.nouns.append(item)

    def _when(self, item: Item) -> None:
        if not self._denies_releases(item) and self.when in ("", "any"):
            self.when = item.value

    def _denies_releases(self, _item: Item) -> bool:
        """Return whether "not" refers to releases: to all releases, or to the releases of the channel or publisher that
        follows, as in "never released as stable"."""
        is_denied = self._is_negated and not self._negated_slot
        if is_denied and {"channel", "platform", "org"}.isdisjoint(self._slots_after(1)):
            self.when, self._is_negated, self.has_unbound_not = "none", False, False
        return is_denied

    def _deny_beyond(self, item: Item) -> None:
        self.found["beyond"].append(item)
        following = [each.start for each in self._items[self._at + 1 : self._at + 2]]
        if self._is_negated and not self._negated_slot and following != [item.end]:
            # "Without ads" denies something that no catalog has.
            self._is_negated = self.has_unbound_not = False

    def _number(self, item: Item) -> None:
        is_small = item.value.isdecimal() and int(item.value) <= MAX_NUMBER
        if is_small and self._counts_results(item):
            self.limit = max(1, int(item.value))
        elif self._is_version(item):
            self._version(item)
        elif "product" not in [each.slot for each in self._items]:
            # A number that counts nothing known; but "compare the two" counts the products.
            self.found["guard"].append(item)

    def _is_version(self, item: Item) -> bool:
        """Return whether the number is a version: it has parts, unlike "144fps", or it follows a product."""
        return "." in item.value or (bool(self.of("product")) and self.words[item.start] == item.value)

    def _counts_results(self, item: Item) -> bool:
        """Return whether the number is beside what it counts or what orders the results, as in "5 free games", "the
        newest 3" and "top 5". In "Which of the two is free?" it is not."""
        at = self._at
        beside = [each.slot for each in self._items[max(0, at - 1) : at] if each.end == item.start]
        beside += [each.slot for each in self._items[at + 1 : at + 2] if each.start == item.end]
        before = self.words[max(0, item.start - 2) : item.start]
        return self.limit is None and not (_COUNTED.isdisjoint(beside) and LISTS["counting"].isdisjoint(before))

    def _version(self, item: Item) -> None:
        """Add a condition on the version, preceded by `>` or `<` if the words before it express a comparison."""
        before = self.words[max(0, item.start - 4) : item.start]
        signs = [_SIGNS[word] for word in before if word in _SIGNS]
        is_between = all((before[-1:] == ["and"], "between" in self.words[: item.start]))
        if any((is_between, before[-1:] in (["to"], ["until"]))):
            signs.append("<=")
            for other in self.of("version"):
                other.value = f">{other.value.lstrip('<>')}"
        if signs:
            guards = self.found["guard"]
            self.signs |= {*before} & {*_SIGNS, "than"}
            bound = {at for at in range(max(0, item.start - 4), item.start) if self.words[at] in self.signs}
            self.found["guard"] = [each for each in guards if each.start not in bound]
        self._value(Item("version", f"{''.join(signs[-1:])}{item.value}", item.start, item.end))

    def _value(self, item: Item) -> None:
        last = self.values[-1:]
        is_joined = self._joint == "or" and [each.end for each in last] == [self._joint_at]
        if all((self._negated_slot not in ("", item.slot), not is_joined)):
            self._is_negated = False
        if (item.slot, [each.slot for each in last]) == ("product", ["tag"]):
            # "The demo of Star Ledger" is another product.
            self.found["guard"] += last * (self.words[last[0].end : item.start] in (["for"], ["of"]))
        # In "You won't know X. What is it?", the negation does not refer to the product.
        item.is_negated |= all((self._is_negated, any((item.slot != "product", item.start in self.sentence))))
        apart = {*range(self._not_at.end, item.start)}
        is_apart = any((self._recognition.unused.keys() & apart, "," in map(self.words.__getitem__, apart)))
        if all((item.is_negated, not self._negated_slot, is_apart)):
            # In "not incorrect to call free" and "nothing big, must be free", other words may be what is negated.
            self.found["guard"].append(self._not_at)
        item.joint = self._joint
        self.has_unbound_not &= not item.is_negated
        self._negated_slot, self._joint = item.slot, ""
        # "Every desktop system" has all of the values of "desktop", not one of them.
        is_of_all = item.slot == "platform" and LISTS["all"] & {*self.words[max(0, item.start - 2) : item.start]}
        texts = item.value.split("|") if is_of_all else [item.value]
        self.values += [dataclasses.replace(item, value=text) for text in texts]

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

    def _requested_fields(self) -> list[str]:
        """Return the fields. In "the channel stable" and "the MIT license", the name of the field only says what
        the value is."""
        values = {(value.slot, end) for value in self.values for end in (value.start, value.end)}
        slots = [(item, SLOT_OF_FIELD.get(item.value, "")) for item in self.found["field"]]
        fields = [item for item, slot in slots if values.isdisjoint([(slot, item.start), (slot, item.end)])]
        return list(dict.fromkeys(item.value for item in fields))

    def _first_word(self) -> str:
        """Return the word that begins the question, after "well," or "according to your records"."""
        skipped = {at for item in self.found["skip"] for at in range(item.start, item.end)}
        words = [self.words[at] for at in range(self.sentence.start, len(self.words)) if at not in skipped]
        return next((word for word in words if word not in COURTESY), "")

    def _is_yes_no(self) -> bool:
        """Return whether the question is a yes/no question, such as "Does Keyturn …", "And Keyturn, does it run on
        Linux?"."""
        words = self.words
        if "whether" in words or (self._first in AUXILIARIES and not self.found["polite"]):
            return True
        auxiliary, subject, *_ = [*(words[words.index(",") + 1 :] if "," in words else ()), "", ""]
        is_question = auxiliary in AUXILIARIES - {"any"} and subject != "you"
        return is_question and self._first not in QUESTION_WORDS

    def reading(self) -> Reading:
        """Build the filter, and collect the words that are not part of the filter."""
        self._slots, members = self.slots(), self._time_range()
        self._products = [item for item in self.of("product") if not item.is_negated]
        self._unused = [word for word in self._recognition.unused.values() if word not in self.signs]
        self._apply_nouns()
        members |= self._decide()
        found = with_slots(Filter(**members), **self._slots)
        self.guards += [*self._ambiguities(found), *self._unanswered(found)]
        beyond = self.found["beyond"]
        self._unused += self._words_of(beyond)
        rest = [item.value for item in beyond], self._recognition.unknown, self._recognition.corrected
        beside = self._words_of(self._beside)
        return Reading(found, self._unused, self.guards, *rest, bool(self.found["all"]), self._is_search, beside)

    def _words_of(self, items: Iterable[Item]) -> list[str]:
        return [" ".join(self.words[item.start : item.end]) for item in items if item.end]

    def _time_range(self) -> dict[str, Any]:
        """Combine the times into one range. "In September of this year" can be combined, but other words between two
        ranges separate them."""
        since = max((item.value.since for item in self.times), default=EARLIEST)
        until = min((item.value.until for item in self.times), default=LATEST)
        ranges = [item for item in self.times if {EARLIEST, LATEST}.isdisjoint(item.value)]
        if any((since >= until, *(second.start > first.end + 2 for first, second in pairwise(ranges)))):
            self.guards.append("several times")
        elif self.times or self.when == "none":
            return {"since": _moment(since), "until": _moment(until), "when": self.when or "any"}
        return {}

    def _apply_nouns(self) -> None:
        """Apply the words that name something other than what the question asks for."""
        nouns = [noun for noun in self.nouns if noun.value != "any"]
        # "Games whose publisher is Northlight Games" and "the studio's games" do not ask for publishers.
        end = min(self._subjects if self.of("org") else [], default=len(self.words)) * (not self.of("product"))
        publishers = [noun for noun in nouns if noun.value == "publishers"]
        others = [noun for noun in publishers if any((noun.start >= end, noun.end in self._kinds))]
        self.nouns = [noun for noun in nouns if noun not in others]
        self._fields += ["org"] * all((others, self.of("product")))
        self._apply_verbs()

    def _apply_verbs(self) -> None:
        """Apply the words that change the order, the form or the kind."""
        order = {"first": "oldest", "last": "newest"}.get("" if self.times else self.when)
        self.orders += [Item("order", order, 0, 0)] * bool(order)
        if all(("than" in self.guards, self.orders, len(self._products) > 1)):
            # "Was A updated more recently than B?"
            self.guards.remove("than")
            self.answer = "exists"
        asked = {*self.words[self.sentence.start : self.sentence.stop]}
        if all(({"play", "playable"} & asked, not [*self.nouns, *self._kinds, *self._unused])):
            self._slots["kind"] = Values(any=("game",))

    def _decide(self) -> dict[str, Any]:
        """Return what to find, the order, the form of the answer and the number of rows. Each is the first row of its
        table that applies."""
        order, noun = ("".join(item.value for item in items[:1]) for items in (self.orders, self.nouns))
        is_bare, self._order = not [*self.nouns, *self._kinds], order or "title"
        is_dated = all((self.times, self.when in ("", "any")))
        # "Is Keyturn out yet?"
        is_out = all((self._asks_whether, self.when == "any", not self._has_condition()))
        is_of_channel = self._is_plural(self.of("channel")) or self._is_extreme_channel()
        find = _first(
            (any((order == "products", all(("org" in self._fields, not self.of("product"))))), "publishers"),
            (noun == "releases" and self._is_of_products(), "products"),
            (noun, noun),
            (all((is_bare, any((is_dated, is_out, is_of_channel)))), "releases"),
            (True, "products"),
        )
        limit = self.limit or (MAX_NUMBER if self.found["sort"] else None)
        form = self._form(find, has_limit=limit is not None)
        is_one = any((find == "releases", {"was", "is", "one"} & self._all_words))
        limit = _first(
            (any((limit, order in ("", "title"), form == _NEWEST_OF_EACH)), limit),
            (order in _COUNTS, 1),
            (self._products, None),
            (all((self._is_plural(self.of("kind") or self.nouns), not is_one)), MAX_PLURAL),
            (True, 1),
        )
        return {"find": find, "order": self._order, "limit": limit, **form}

    def _form(self, find: str, *, has_limit: bool) -> dict[str, Any]:
        """Return the members of the filter that give the answer its form."""
        products, fields, slots, words = self._products, self._fields[:4], self._slots, self._all_words
        is_one, are_several, is_whether = len(products) == 1, len(products) > 1, self._asks_whether
        is_about, has_all, order = any((products, self.answer == "compare")), bool(self.found["all"]), self.orders
        # "Are A and B by the same studio?"
        alike = [*filter(SLOT_OF_FIELD.__contains__, self._fields)]
        is_compared = all((self.answer == "compare", len(self.of("product")) > 1))
        are_channels = any((self.by == "channel", len(self.of("channel")) > 1))
        # "Number" is of a product in "the number of platforms of X" and "the number of its latest release".
        is_of_product = all((products, any((order, {"platforms", "channels", "tags"} & {*fields}))))
        is_counted = all((self.answer == "count", not is_of_product, self._order != "products"))
        # "More recently" compares both products.
        is_which = all((self._first == "which", not self.nouns))
        is_choice = all((any((is_which, "or" in [item.joint for item in products])), "recently" not in words))
        releases, are_versions = self._releases(), self._is_plural(self._releases())
        is_of_releases = any((find == "releases", order, fields))
        has_range = any((self.times, self.of("version"), (_ALL | {"list"}) & words, has_limit))
        is_of_one = all((any((order, all((releases, not are_versions)))), not has_range))
        # The newest release of each product.
        is_each = any((all((find == "releases", are_versions)), _ALL & words))
        is_each = all((is_each, any((find == "releases", self._is_extreme_channel()))))
        is_ranked = all((order, not has_limit, self._order not in _COUNTS))
        # "Summarise the 1.9.1 release" asks for everything about a version.
        is_of_version = all(("version" in slots, not fields, any((has_all, not [*self.nouns, *order]))))
        notes, choices = self._notes(), self._choices()
        form = _first(
            (notes, notes),
            (all((are_several, self.found["same"], alike)), {"answer": "exists", "fields": tuple(alike)}),
            (self.answer == "exists", {"answer": "exists"}),
            # The newest release in each channel.
            (all((products, order, are_channels)), {"answer": "fields", "fields": ("channels",), "order": "title"}),
            (all((self.by, not order)), {"answer": "breakdown", "by": self.by}),
            (is_counted, {"answer": "count", "find": "releases" if is_one else find}),
            (is_compared, {"answer": "compare"}),
            (all((choices, is_one)), {"answer": "fields", "fields": choices}),
            (all((is_whether, not all((is_about, "notes" in fields)))), {"answer": "exists"}),
            (all((not is_about, is_ranked, is_each)), _NEWEST_OF_EACH),
            (not is_about, {}),
            (is_of_version, {"answer": "fields", "fields": ("notes",)}),
            (fields not in ([], ["versions"]), {"answer": "fields", "fields": tuple(fields)}),
            (all((are_several, any((self._has_condition(), is_choice)))), {"limit": 1} if order else {}),
            (all((are_several, order)), _NEWEST_OF_EACH),
            (all((is_of_releases, is_of_one, order)), {"find": "releases", "limit": 1}),
            (all((is_of_releases, is_of_one)), {"find": "releases", "limit": 1, "order": "newest"}),
            (all((is_of_releases, is_ranked, is_each)), _NEWEST_OF_EACH),
            (is_of_releases, {"find": "releases"}),
            (all((any((self._has_condition(), "channel" in slots)), not has_all)), {"answer": "exists"}),
            (True, {"answer": "fields"}),
        )
        if is_compared:
            slots["product"] = Values(any=(*slots["product"].any, *slots["product"].none))
        whole = all(("notes" in form.get("fields", ()), LISTS["whole"] & words))
        return form | {"limit": MAX_NOTES} if whole else form

    def _notes(self) -> dict[str, Any]:
        """Return the form of the answer to a question about changes with unknown words: the release notes that contain
        them."""
        is_whether, is_of_releases = self._asks_whether, all((self._releases(), not self.orders))
        is_question = any(("notes" in self._fields, all((is_of_releases, not self._asks_whether))))
        # No text says who holds the copyright, or why.
        is_question &= all((self._first not in OF_OTHERS, is_whether or "version" not in self._slots))
        if not all((self._unused, is_question, len(self._products) == 1)):
            return {}
        terms = tuple(terms_of(" ".join(self._unused))[:6])
        self._slots["text"] = Values(all=terms) if is_whether else Values(any=terms)
        self._unused, self._recognition.unknown, self._is_search = [], "", True
        answer = "exists" if is_whether else "fields"
        return {"find": "releases", "answer": answer, "fields": ("notes",), "order": "title", "limit": None}

    def _choices(self) -> tuple[str, ...]:
        """Return the fields for which the question names several values although a product has only one value, as in
        "Is it free or paid?"."""
        several = {name for name, values in self._slots.items() if len(values.any) > 1}
        return tuple(name for name in ("kind", "access", "license") if name in several and len(self.of(name)) > 1)

    def _releases(self) -> list[Item]:
        return [noun for noun in self.nouns if noun.value == "releases"]

    def _has_condition(self) -> bool:
        """Return whether a condition restricts the products, and not only their releases."""
        return any(item.slot not in _OF_RELEASES for item in self.values)

    def _is_of_products(self) -> bool:
        """Return whether the question asks for a kind of product, as in "games with a release in May"."""
        noun, start = self.nouns[0].start, self.sentence.start
        is_of_kind = any(kind < noun - 1 and (noun < start or kind >= start) for kind in self._subjects)
        return is_of_kind or "never" in self._all_words

    def _is_extreme_channel(self) -> bool:
        """Return whether a channel follows the order, as in "the newest beta"."""
        return bool(self.orders) and self.orders[-1].end in [item.start for item in self.of("channel")]

    def _is_plural(self, nouns: Iterable[Item]) -> bool:
        return any(self.words[noun.end - 1].endswith("s") for noun in nouns if not noun.is_negated)

    def _ambiguities(self, found: Filter) -> list[str]:
        """Return what makes the question ambiguous, or what a filter cannot express."""
        answers = [item.value for item in self._recognition.items if item.slot == "answer"]
        asked, slots = self.words[self.sentence.start :], self._slots.values()
        has_limits = any(({"only", "both"} & self._all_words, len({item.is_negated for item in self.values}) > 1))
        has_choice = any(len(self._slots[name].any) > 1 for name in KNOWN.keys() & self._slots.keys())
        is_by_number = all((self._order in ("releases", "platforms"), self._asks_whether, len(self._products) == 1))
        guards = {
            # "Split into games and apps", "the newest release per publisher"
            "each": any((
                all((self.found["each"], not self.by, has_choice)),
                all((self.by, self.orders, found.answer != "fields")),
            )),
            "same": all((self.found["same"], self._products, not found.fields)),
            # "Apart from games on Windows, what games …"
            "not": any((
                all((self.has_unbound_not, found.answer != "compare")),
                *({*values.any} & {*values.none} for values in slots),
            )),
            # "Publishers without a free game" does not ask for the publishers of other games.
            "publishers": all((found.find == "publishers", has_limits)),
            "versions of several products": all((len(self._products) > 1, self.of("version"))),
            # "Are there two betas?", "Did it release more in 2025 or 2026?", "Are all games free?"
            "number": all((self._asks_whether, self.limit not in (None, 1))),
            "more": all((self._asks_whether, self.times, "more" in self._all_words)),
            "all": all((found.answer == "exists", not self._products, asked[1:2] in (["all"], ["every"]))),
            "both": all((asked[-2:-1] == ["both"], *(len(values.any) < 2 > len(values.all) for values in slots))),
            # "How many games are for Linux, compared to Windows?"
            "several forms of answer": any((len({*answers} - {"exists"}) > 1, answers.count("count") > 1)),
            # "Which platform has the most games?", "Is Keyturn on the most platforms?"
            "most": any((all((self._order == "products", self._fields)), is_by_number, self._is_unordered)),
        }  # fmt: skip
        return [guard for guard, applies in guards.items() if applies]

    def _unanswered(self, found: Filter) -> list[str]:
        """Return what the question asks that neither a list nor a number of products answers: the question word ("who",
        "why"), and the names of fields."""
        # "Is Keyturn good?" has no condition, but "Do you have Keyturn?" is complete.
        is_bare = replace(with_slots(found, product=Values()), answer="list") == Filter()
        is_complete = all((self._products, LISTS["having"] & self._all_words))
        if all((found.answer == "exists", is_bare, not is_complete)):
            return [*filter(str.isalpha, self.words)][-1:]
        # "Who holds the copyright in X?"
        others = [self._first] * all((self._unused, self._first in OF_OTHERS, "org" not in self._fields))
        # "Which release added it?" does not name a product.
        is_of_rows = any((found.find == "products", found == Filter(find="releases")))
        # "Is it free, and on which platforms does it run?"
        is_open = all((found.answer == "exists", not found.fields, {"notes", "org"}.isdisjoint(self._fields)))
        if not is_open and any((self._products, not is_of_rows, found.answer not in ("list", "count", "exists"))):
            return others * (self._first == "who")
        expressed = {name for name, slot in SLOT_OF_FIELD.items() if slot in self._slots} | {self._order}
        return [*others, *filterfalse(expressed.__contains__, self._fields)]


def _first(*rows: tuple[object, T]) -> T:
    """Return the value of the first row that applies."""
    return next(value for applies, value in rows if applies)


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


def _moment(at: datetime) -> str | None:
    return None if at in (EARLIEST, LATEST) else at.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
