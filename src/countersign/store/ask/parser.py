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
from itertools import filterfalse, pairwise, takewhile
from typing import Any

from msgspec.structs import replace

from countersign.kernel.database.port import Database
from countersign.store.ask.dates import EARLIEST, LATEST
from countersign.store.ask.items import Corrected, Recognition
from countersign.store.ask.lexicon import COURTESY, LISTS, WordToken
from countersign.store.ask.scope import AUXILIARIES, QUESTION_WORDS, SENTENCE_ENDS, SLOT_OF_FIELD, Item, Scope
from countersign.store.catalog import names
from countersign.store.catalog.filter import KNOWN, SLOTS, Filter, Values, with_slots
from countersign.store.catalog.search import words as terms_of

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
_OR_SLOTS = _OF_SETS | {"time"}
_COUNTED = _OF_SETS | {"find", "order", "sort"}
"""The slots of items that a number of results is beside."""
_SIGNS = dict.fromkeys(LISTS["newer"], ">") | dict.fromkeys(LISTS["older"], "<") | {">=": ">=", "<=": "<="}


@dataclass(slots=True)
class Reading:
    """The interpretation of a question.

    `unused` contains the words that did not become part of the filter. `guards` contains words that change the meaning
    of the question in a way that the filter does not express. `beyond` contains words that ask for something that no
    catalog contains. `unknown` is a name that the catalog does not contain. `is_search` is true if words are searched
    for that may have another meaning.
    """

    filter: Filter
    unused: list[str] = field(default_factory=list[str])
    guards: list[str] = field(default_factory=list[str])
    beyond: list[str] = field(default_factory=list[str])
    unknown: str = ""
    corrected: list[Corrected] = field(default_factory=list[Corrected])
    is_about_text: bool = False
    is_search: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the filter expresses every word that has a meaning."""
        return not (self.unused or self.guards or self.beyond or self.unknown)


class QuestionParser:
    """Binds the items of a question to each other, and builds the filter. `found` maps each slot or class to its items.
    `values` contains the items that are conditions, in the order of the question."""

    def __init__(self, tokens: Sequence[WordToken], recognition: Recognition) -> None:
        self.words = [token.word for token in tokens]
        self._recognition, self._scope = recognition, Scope(tokens, recognition.items)
        self.sentence = self._scope.question
        self.found: defaultdict[str, list[Item]] = defaultdict(list)
        self.values: list[Item] = []
        self.nouns: list[Item] = []
        self.limit: int | None = None
        self.by = self.when = ""
        self.used: set[str] = set()
        self.has_unbound_not = False
        within = [Item("", "", 0, 0), *self._scope.items()]
        # "Irrespective of the publisher" makes the next item irrelevant.
        self._items, self._at = [item for before, item in pairwise(within) if before.slot != "whatever"], 0
        self._only: set[str] = set()
        self._is_negated, self._negated_slot, self._joint, self._joint_at = False, "", "", 0
        self._read()
        self.orders, self.times = [*self.found["sort"], *self.found["order"]], self.found["time"]
        answers = [item.value for item in self.found["answer"]]
        self.answer = "".join(answers[:1])
        guards = [*self.found["guard"], *self.found["step"]]
        self.guards: list[str] = [" ".join(self.words[item.start : item.end]) for item in guards]
        self.guards += ["how many"] * (answers.count("count") > 1)
        self.guards += ["most"] * all(("most" in self.words, not self.orders))
        self._split()
        self._read_end()
        self.found["beyond"] += [Item("beyond", "the future", 0, 0)] * self._is_of_future()
        for item in self.of("text") * bool(self.found["titled"]):
            item.slot = "title"
        self._all_words = {*self.words}
        self._fields = self._requested_fields()
        self._kinds = [item.start for item in self.of("kind")]
        self._subjects = [*self._kinds, *(noun.start for noun in self.nouns if noun.value in ("any", "products"))]
        self._members: dict[str, Any] = {}
        self._slots: dict[str, Values] = {}
        self._products: list[Item] = []
        self._unused: list[str] = []
        self._order_of = ""
        self._first = self._first_word()
        self._asks_whether = self._is_yes_no()

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
            is_field = item.slot in ("field", "find") and item.value in SLOT_OF_FIELD
            if is_field and any(item.start - each.end in (0, 1) for each in self.found["each"][-1:]):
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

    def _split(self) -> None:
        """Count by the slot of the listed values, as in "Split into games, apps and tools"."""
        end = max([each.end for each in self.found["each"]], default=len(self.words))
        listed = [value for value in self.values if value.start >= end]
        if len(listed) > 1 and {value.slot for value in listed} in [{slot} for slot in KNOWN]:
            self.by, self.values = listed[0].slot, [value for value in self.values if value.start < end]

    def _read_end(self) -> None:
        """Read a question at the end of a statement, as in "Keyturn is free, right?"."""
        tail = ["", *filter("?".__ne__, self.words)][-3:]
        is_statement = self.words[-1:] == ["?"] and QUESTION_WORDS.isdisjoint(self.words[slice(*self.sentence)])
        if is_statement and tail[-1] in LISTS["ends of statements"]:
            self.answer = "exists"
        if tail[0] == "," and tail[1] in AUXILIARIES and tail[2] != "you":
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

    def _not(self, item: Item) -> None:
        word, is_first = self.words[item.start], item.start == self.sentence.start
        if word == "out" and "channel" not in self._slots_after(item, 1):
            return  # "Out of beta" is not a beta, but "games out of this studio" are of the studio.
        if (self._is_negated and not self._negated_slot) or self.words[item.end : item.end + 1] == ["("]:
            # "Except those without …" is a double negation; "not (A and B)" negates several conditions together.
            self.found["guard"].append(item)
        # "Isn't it free?" asks whether the product is free.
        elif not (is_first and word in AUXILIARIES):
            self._is_negated, self._negated_slot, self._joint = True, "", ""
            self.has_unbound_not |= self.sentence.has(item) or self._scope.limits(item)

    def _negate_preceding(self, _item: Item) -> None:
        """Negate the preceding values, as in "Betas left out"."""
        for value in takewhile(lambda value: value.slot == self.values[-1].slot, reversed(self.values)):
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
        if self._is_negated:
            # "Not only for Windows" means that Windows is not the only platform.
            self.found["guard"].append(item)
        before, after = self.words[max(0, item.start - 3) : item.start], self.words[item.end : item.end + 2]
        is_within = any((self.words[item.start] != "just", self.sentence.has(item), after[:1] in (["for"], ["on"])))
        if not all((is_within, LISTS["named before"].isdisjoint(after), LISTS["askers"].isdisjoint(before))):
            return
        # The preceding value must be beside "only", but not beside "nowhere else".
        last = [each for each in self.values[-1:] if item.value == "after" or each.end >= item.start - 1]
        last = [each.slot for each in last if SENTENCE_ENDS.isdisjoint(self.words[each.end : item.start])]
        self._only |= {*[slot for slot in (*self._slots_after(item, 2), *last) if slot in ("platform", "channel")][:1]}

    def _slots_after(self, item: Item, count: int) -> list[str]:
        """Return the slots of the next items."""
        return [each.slot for each in self._items[self._at + 1 : self._at + 1 + count]]

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
        is_small = item.value.isdecimal() and int(item.value) <= MAX_NUMBER
        if is_small and self._counts_results(item):
            self.limit = max(1, int(item.value))
        elif not is_small or (self.of("product") and self.words[item.start] == item.value):
            self._version(item)
        elif "product" not in [each.slot for each in self._items]:
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
            self.limit, order = 1, "newest" if step[0].value == "<" else "oldest"
            self.found["order"].append(Item("order", order, step[0].start, step[0].end))
        self._value(Item("version", compared, item.start, item.end))

    def _signed_version(self, item: Item) -> str:
        """Return the version, preceded by `>` or `<` if the words before it express a comparison."""
        before = self.words[max(0, item.start - 4) : item.start]
        is_between = before[-1:] == ["and"] and "between" in self.words[max(0, item.start - 6) : item.start]
        if any((is_between, before[-1:] in (["to"], ["until"]))):
            for other in self.of("version"):
                other.value = f">{other.value.lstrip('<>')}"
            return f"<={item.value}"
        compared = [word for word in before if word in _SIGNS]
        if compared:
            self.used |= {*compared, "than"}
            self.found["guard"] = [each for each in self.found["guard"] if self.words[each.start] not in self.used]
        return f"{_SIGNS[compared[-1]] if compared else ''}{item.value}"

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
        item.is_negated |= self._is_negated and (item.slot != "product" or self.sentence.has(item))
        item.joint = self._joint
        self.has_unbound_not &= not item.is_negated
        self._negated_slot, self._joint = item.slot, ""
        # "Every desktop system" has all of the values of "desktop", not one of them.
        is_of_all = not LISTS["all"].isdisjoint(self.words[max(0, item.start - 2) : item.start])
        texts = item.value.split("|") if is_of_all and item.slot == "platform" else [item.value]
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
        """Return the fields. In "the channel stable", the name of the field only says what "stable" is."""
        values = {(value.slot, value.start) for value in self.values}
        fields = [item for item in self.found["field"] if (SLOT_OF_FIELD.get(item.value), item.end) not in values]
        return list(dict.fromkeys(item.value for item in fields))

    def _first_word(self) -> str:
        """Return the word that begins the question, after "well," or "according to your records"."""
        skipped = {at for item in self.found["skip"] for at in range(item.start, item.end)}
        words = [self.words[at] for at in range(self.sentence.start, len(self.words)) if at not in skipped]
        return next((word for word in words if word not in COURTESY), "")

    def _is_yes_no(self) -> bool:
        """Return whether the question is a yes/no question, such as "Does Keyturn …" or "And Keyturn, does it run on
        Linux?"."""
        words = self.words
        if "whether" in words or (self._first in AUXILIARIES and not self.found["polite"]):
            return True
        auxiliary, subject, *_ = [*(words[words.index(",") + 1 :] if "," in words else ()), "", ""]
        return auxiliary in AUXILIARIES and subject != "you" and self._first not in QUESTION_WORDS

    async def reading(self, database: Database) -> Reading:
        """Build the filter, and collect the words that are not part of the filter."""
        self._slots = self.slots()
        self._products = [item for item in self.of("product") if not item.is_negated]
        self._unused = [word for word in self._recognition.unused if word not in self.used]
        self._combine_times()
        self._apply_nouns()
        self._set_order()
        self._set_find()
        await self._of_publisher(database)
        self._compare()
        self._report_ambiguities()
        self._set_answer()
        self._search_notes()
        self._set_limit()
        found = with_slots(Filter(**self._members), **self._slots)
        self.guards += ["not"] * (self.has_unbound_not and found.answer != "compare")
        self.guards += self._unanswered(found)
        beyond = [item.value for item in self.found["beyond"]]
        rest = self.guards, beyond, self._recognition.unknown, self._recognition.corrected
        is_about_text, is_search = bool(self.found["all"]), bool(self.of("text"))
        return Reading(found, self._unused, *rest, is_about_text, is_search)

    def _unanswered(self, found: Filter) -> list[str]:
        """Return what the question asks about unnamed products that neither a list nor a number of products answers:
        the question word ("who", "why"), and the names of fields."""
        # "Is Keyturn good?" has no condition, but "Do you have Keyturn?" is complete.
        is_bare = replace(with_slots(found, product=Values()), answer="list") == Filter()
        is_complete = all((self._products, LISTS["having"] & self._all_words))
        if all((found.answer == "exists", is_bare, not is_complete)):
            return [*filter(str.isalpha, self.words)][-1:]
        if self._products:  # "Who holds the copyright in X?"
            return [self._first] * all((self._unused, self._first == "who", "org" not in self._fields))
        # "Which release added it?" does not name a product.
        is_of_rows = any((found.find == "products", found == Filter(find="releases")))
        if not all((is_of_rows, found.answer in ("list", "count", "exists"))):
            return []
        expressed = {name for name, slot in SLOT_OF_FIELD.items() if slot in self._slots} | {self._order_of}
        others = [self._first] * all((self._unused, self._first in OF_OTHERS))
        return [*others, *filterfalse(expressed.__contains__, self._fields)]

    def _combine_times(self) -> None:
        """Combine the times into one range. "In September of this year" can be combined, but other words between two
        ranges separate them."""
        since = max((item.value.since for item in self.times), default=EARLIEST)
        until = min((item.value.until for item in self.times), default=LATEST)
        ranges = [item for item in self.times if {EARLIEST, LATEST}.isdisjoint(item.value)]
        if any((since >= until, *(second.start > first.end + 2 for first, second in pairwise(ranges)))):
            self.guards.append("several times")
        elif self.times or self.when == "none":
            self._members |= {"since": _moment(since), "until": _moment(until), "when": self.when or "any"}

    def _apply_nouns(self) -> None:
        """Apply the nouns that do not name what the question asks for, and the order."""
        nouns = [noun for noun in self.nouns if noun.value != "any"]
        # "Games whose publisher is Northlight Games" and "the studio's games" do not ask for publishers.
        end = min(self._subjects if self.of("org") else [], default=len(self.words)) * (not self.of("product"))
        publishers = [noun for noun in nouns if noun.value == "publishers"]
        others = [noun for noun in publishers if any((noun.start >= end, noun.end in self._kinds))]
        self.nouns = [noun for noun in nouns if noun not in others]
        self._fields += ["org"] * all((others, self.of("product")))

    def _set_order(self) -> None:
        order = {"first": "oldest", "last": "newest"}.get("" if self.times else self.when)
        is_of_releases = self.nouns[:1] == self._releases()[:1] != []
        is_open = all((is_of_releases, not order, not self.orders, not self.times, not self._products))
        if is_open and _ALL & self._all_words and not self._is_of_products(self.nouns[0].start):
            order = "newest"
        if order:
            self.orders.append(Item("order", order, 0, 0))
        limit = self.limit or (MAX_NUMBER if self.found["sort"] else None)
        self._members |= {} if limit is None else {"limit": limit}
        if self.orders:
            self._order_of = self._members["order"] = self.orders[0].value

    def _set_find(self) -> None:
        find = self.nouns[0].value if self.nouns else "products"
        if find == "releases" and self._is_of_products(self.nouns[0].start):
            find = "products"
        if any((self._order_of == "products", all(("org" in self._fields, not self.of("product"))))):
            find = "publishers"
        elif not [*self.nouns, *self._kinds]:
            is_dated = all((self.times, self.when in ("", "any")))
            # "Is Keyturn out yet?"
            is_out = all((self._asks_whether, self.when == "any", not self._has_condition()))
            is_of_channel = self._is_plural(self.of("channel")) or self._is_extreme_channel()
            find = "releases" if any((is_dated, is_out, is_of_channel)) else find
            if {"play", "playable"} & self._all_words:
                self._slots["kind"] = Values(any=("game",))
        self._members["find"] = find

    def _releases(self) -> list[Item]:
        return [noun for noun in self.nouns if noun.value == "releases"]

    def _has_condition(self) -> bool:
        """Return whether a condition restricts the products, and not only their releases."""
        return any(item.slot not in _OF_RELEASES for item in self.values)

    def _is_of_products(self, noun: int) -> bool:
        """Return whether the question asks for a kind of product, as in "games with a release in May"."""
        start = self.sentence.start
        is_of_kind = any(kind < noun - 1 and (noun < start or kind >= start) for kind in self._subjects)
        return is_of_kind or "never" in self._all_words

    def _is_extreme_channel(self) -> bool:
        """Return whether a channel follows the order, as in "the newest beta"."""
        return bool(self.orders) and self.orders[-1].end in [item.start for item in self.of("channel")]

    async def _of_publisher(self, database: Database) -> None:
        """Search for the other products of the publisher, as in "What else have the makers of it made?"."""
        products, others = self.of("product"), LISTS["others"]
        is_of_maker = "org" in self._fields or LISTS["making"] & self._all_words
        if len(products) == 1 and others & self._all_words and is_of_maker:
            org = await names.publisher_of(database, products[0].value)
            self._slots |= {"org": Values(any=(org,)), "product": Values(none=(products[0].value,))}
            self._fields, self._products = [], []
            self._unused = [word for word in self._unused if word not in others]
            self._members["find"] = "products"

    def _compare(self) -> None:
        """Answer yes or no about two products: "Are A and B by the same studio?", "Was A updated more recently than
        B?"."""
        fields = tuple(name for name in self._fields if name in SLOT_OF_FIELD)
        if len(self._products) < 2:
            return
        if "against" in self._all_words:
            self.answer = "compare"  # "Set A against B"
        elif "than" in self.guards and self.orders:
            self.guards.remove("than")
            self.answer = "exists"
        elif self.found["same"] and fields:
            self.answer, self._members["fields"] = "exists", fields

    def _report_ambiguities(self) -> None:
        """Report what makes the question ambiguous, or what a filter cannot express."""
        is_by_number = all((self._order_of in _COUNTS, self._asks_whether, len(self._products) == 1))
        guards = {
            "versions of several products": all((len(self._products) > 1, self.of("version"))),
            # "Are there two betas?", "I can't find 1.2.0, is it out?"
            "number": all((self._asks_whether, self.limit not in (None, 1))),
            # "Did it release more in 2025 or 2026?"
            "more": all((self._asks_whether, self.times, "more" in self._all_words)),
            # "How many games are for Linux, compared to Windows?"
            "several forms of answer": len({item.value for item in self.found["answer"]} - {"exists"}) > 1,
            # "Which platform has the most games?", "Is Keyturn on the most platforms?"
            "most": self._fields if self._order_of == "products" else is_by_number,
        }
        self.guards += [guard for guard, applies in guards.items() if applies]

    def _set_answer(self) -> None:
        """Set the form of the answer to the first form that matches the question."""
        members, products, orders, slots = self._members, self._products, self.orders, self._slots
        fields, choices, is_one, are_several = self._fields[:4], self._choices(), len(products) == 1, len(products) > 1
        is_about, has_all = any((products, self.answer == "compare")), bool(self.found["all"])
        is_compared = all((self.answer == "compare", len(self.of("product")) > 1))
        are_channels = any((self.by == "channel", len(self.of("channel")) > 1))
        # "Number" is of a product in "the number of platforms of X" and "the number of its latest release".
        is_of_product = all((products, any((orders, {"platforms", "channels", "tags"} & {*self._fields}))))
        is_counted = all((self.answer == "count", not is_of_product, self._order_of != "products"))
        # "Which of A and B is the newest?"; "more recently" compares both products.
        is_which = all((self._first == "which", not self.nouns))
        is_choice = any((is_which, "or" in [item.joint for item in products]))
        has_condition, is_narrowed = self._has_condition(), "recently" not in self._all_words
        is_of_releases = any((members["find"] == "releases", orders, fields))
        is_singular = not LISTS["one release"].isdisjoint(self.words[noun.end - 1] for noun in self._releases())
        has_range = any((self.times, self.of("version"), (_ALL | {"list"}) & self._all_words, "limit" in members))
        forms: Sequence[tuple[object, dict[str, Any]]] = (
            (self.answer == "exists", {"answer": "exists"}),
            # The newest release in each channel.
            (all((products, orders, are_channels)), {"answer": "fields", "fields": ("channels",), "order": "title"}),
            (all((self.by, not orders)), {"answer": "breakdown", "by": self.by}),
            (is_counted, {"answer": "count", "find": "releases" if is_one else members["find"]}),
            (is_compared, {"answer": "compare"}),
            (all((choices, is_one)), {"answer": "fields", "fields": choices}),
            (all((self._asks_whether, not all((is_about, "notes" in fields)))), {"answer": "exists"}),
            (not is_about, {}),
            # "Summarise the 1.9.1 release" asks for everything about a version.
            (
                all(("version" in slots, not fields, not orders, any((has_all, not self.nouns)))),
                {"answer": "fields", "fields": ("notes",)},
            ),
            (fields not in ([], ["versions"]), {"answer": "fields", "fields": tuple(fields)}),
            (all((are_several, any((has_condition, all((is_choice, is_narrowed)))))), {"limit": 1} if orders else {}),
            (all((are_several, orders)), {"find": "products", "answer": "fields", "fields": ("versions",)}),
            (
                all((is_of_releases, any((orders, is_singular)), not has_range)),
                {"find": "releases", "limit": 1, "order": self._order_of or "newest"},
            ),
            (is_of_releases, {"find": "releases"}),
            (all((any((has_condition, "channel" in slots)), not has_all)), {"answer": "exists"}),
            (True, {"answer": "fields"}),
        )
        members |= next(form for applies, form in forms if applies)
        if members.get("answer") == "compare":
            slots["product"] = Values(any=(*slots["product"].any, *slots["product"].none))

    def _choices(self) -> tuple[str, ...]:
        """Return the fields for which the question names several values although a product has only one value, as in
        "Is it free or paid?"."""
        several = {name for name, values in self._slots.items() if len(values.any) > 1}
        return tuple(name for name in ("kind", "access", "license") if name in several and len(self.of(name)) > 1)

    def _search_notes(self) -> None:
        """Search the release notes for the unknown words of a question about changes."""
        members, is_whether = self._members, self._asks_whether
        if all(("notes" in members.get("fields", ()), LISTS["whole"] & self._all_words)):
            members["limit"] = MAX_NOTES
        is_of_one = (members["find"], members.get("limit")) == ("releases", 1)
        is_of_releases = any((is_of_one, all((self._releases(), self._recognition.is_in_texts))))
        is_question = any(("notes" in self._fields, all((is_of_releases, not is_whether, not self.orders))))
        # No text says who holds the copyright, or why.
        is_question &= all((self._first not in OF_OTHERS, any((is_whether, "version" not in self._slots))))
        if self._unused and is_question and len(self._products) == 1:
            terms = tuple(terms_of(" ".join(self._unused))[:6])
            self._slots["text"] = Values(all=terms) if is_whether else Values(any=terms)
            members |= {"find": "releases", "answer": "exists" if is_whether else "fields"}
            members |= {"fields": ("notes",), "order": "title", "limit": None}
            self._unused, self._recognition.unknown = [], ""

    def _set_limit(self) -> None:
        """Set the number of results if the question contains no number."""
        members, order = self._members, self._order_of
        if any((not order, "limit" in members)):
            return
        # Whether the newest release of each product is asked for.
        has_all, is_of_releases = bool(_ALL & self._all_words), members["find"] == "releases"
        are_versions = "versions" in [self.words[noun.end - 1] for noun in self._releases()]
        is_of_each = any((has_all, are_versions)) if is_of_releases else all((has_all, self._is_extreme_channel()))
        if order in _COUNTS:
            members["limit"] = 1
        elif "answer" not in members and is_of_each:
            members |= {"find": "products", "answer": "fields", "fields": ("versions",)}
        elif order != "title" and not self._products:
            beginning = self.words[self.sentence.start :][:6]
            is_one = any((is_of_releases, {"was", "is", "one"} & {*beginning}))
            is_plural = self._is_plural([*self.of("kind"), *self.nouns])
            members["limit"] = MAX_PLURAL if all((is_plural, not is_one)) else 1

    def _is_plural(self, nouns: Iterable[Item]) -> bool:
        return any(self.words[noun.end - 1].endswith("s") for noun in nouns if not noun.is_negated)


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
