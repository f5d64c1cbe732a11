"""The filter in SQL: fixed fragments, with values as parameters only.

They read the table of public products and published releases alone, so that nothing else can be found, counted or
guessed at, whatever is asked.
"""

import re
from collections.abc import Callable, Sequence

from countersign.distribution.catalog.filter import Filter, Values, conditions, moment
from countersign.distribution.catalog.projection import WEIGHT_OF_TITLE
from countersign.distribution.catalog.public import CHANNELS, ORG_KEY, PLATFORMS, bits, key
from countersign.distribution.catalog.statements import Statement
from countersign.distribution.catalog.versions import sort_key
from countersign.distribution.catalog.words import words
from countersign.kernel.database.port import Value

OPEN, NO_LICENSE = "open", "none"
"""Of licences: any but a proprietary one; none at all."""
_TAG = re.compile(r"[a-z0-9-]{1,40}")
_BY_TITLE = "c.title, c.product_id"
_RELEASES = "(SELECT count(*) FROM release r WHERE r.product_id = c.product_id AND r.status = 'published')"
_ORDERS = {
    "title": _BY_TITLE,
    "newest": f"c.last_at DESC, {_BY_TITLE}",
    "oldest": f"c.first_at, {_BY_TITLE}",
    "releases": f"{_RELEASES} DESC, {_BY_TITLE}",
    "platforms": "(c.platforms & 1) + (c.platforms & 2) / 2 + (c.platforms & 4) / 4 + (c.platforms & 8) / 8"
    f" + (c.platforms & 16) / 16 + (c.platforms & 32) / 32 DESC, {_BY_TITLE}",
    "products": _BY_TITLE,
}
_ORDERS_OF_PUBLISHERS = {
    "products": "products DESC, ",
    "releases": f"sum({_RELEASES}) DESC, ",
    "newest": "max(coalesce(c.last_at, 0)) DESC, ",
    "oldest": f"min(coalesce(c.first_at, {1 << 62})), ",
}
_FROM = {
    "products": "catalog_public c",
    "publishers": "catalog_public c JOIN organisation o ON o.slug = c.org_slug",
    "releases": "catalog_public c JOIN release r ON r.product_id = c.product_id",
}
_HAS_TERM = (
    "c.product_id IN (SELECT t.product_id FROM catalog_term t WHERE t.term IN ({terms}) AND t.weight >= {weight})"
)
_COMPARISON = re.compile(r"(>=|<=|>|<)\s*v?(.+)", re.DOTALL)
_BITS = {"platform": PLATFORMS, "channel": CHANNELS}
Built = tuple[str, list[Value]]


def rows(asked: Filter, limit: int) -> Built:
    """The first rows. Products: slug, title. Releases: slug, title, version, channel, published_at, notes. Publishers:
    slug, name, how many of the products they publish."""
    statement = Statement()
    where = _where(statement, asked)
    columns, order = "c.slug, c.title", _ORDERS[asked.order]
    if asked.find == "releases":
        columns += ", r.version, r.channel, r.published_at, r.notes"
        sign = "" if asked.order == "oldest" else " DESC"
        order = f"r.published_at{sign}, r.sort_key{sign}, r.id{sign}"
    elif asked.find == "publishers":
        columns, where = "o.slug, o.name, count(*) AS products", f"{where} GROUP BY o.slug, o.name"
        order = f"{_ORDERS_OF_PUBLISHERS.get(asked.order, '')}o.name, o.slug"
    elif asked.order in ("newest", "oldest"):
        where += " AND c.last_at IS NOT NULL"
    text = f"SELECT {columns} FROM {_FROM[asked.find]} WHERE {where} ORDER BY {order} LIMIT {statement.value(limit)}"
    return text, statement.values


def count(asked: Filter) -> Built:
    """How many there are."""
    statement = Statement()
    what = "count(DISTINCT c.org_slug)" if asked.find == "publishers" else "count(*)"
    return f"SELECT {what} FROM {_FROM[asked.find]} WHERE {_where(statement, asked)}", statement.values


def breakdown(asked: Filter, value: str) -> Built:
    """How many products there are for each value of a column of theirs: value, number."""
    statement = Statement()
    text = f"SELECT {value}, count(*) FROM {_FROM[asked.find]} WHERE {_where(statement, asked)}"
    return f"{text} GROUP BY {value} ORDER BY 2 DESC, 1 LIMIT 50", statement.values


def _where(statement: Statement, asked: Filter) -> str:
    found = _of_releases(statement, asked) if asked.find == "releases" else _of_products(statement, asked)
    return " AND ".join(found) or "1 = 1"


def _of_products(statement: Statement, asked: Filter) -> list[str]:
    dated = asked.since is not None or asked.until is not None
    found = _conditions(statement, asked, without=("channel",) if dated and asked.when in ("any", "none") else ())
    if asked.when in ("first", "last"):
        column = f"c.{asked.when}_at"
        found += [f"{column} IS NOT NULL", *_range(statement, column, asked)]
    elif dated or asked.when == "none":
        ranged = [*_channels(statement, asked.channel), *_range(statement, "r.published_at", asked)]
        found.append(_has_release(ranged, "NOT IN" if asked.when == "none" else "IN"))
    if asked.where.version:
        found.append(_has_release(_of_version(statement, asked.where.version)))
    return found


def _has_release(tests: Sequence[str], sign: str = "IN") -> str:
    tests = ["r.status = 'published'", *tests]
    return f"c.product_id {sign} (SELECT r.product_id FROM release r WHERE {' AND '.join(tests)})"


def _of_releases(statement: Statement, asked: Filter) -> list[str]:
    is_of_product = bool(asked.where.product.any)
    found = ["r.status = 'published'"]
    found += _conditions(statement, asked, without=("channel", "text") if is_of_product else ("channel",))
    found += _joined(statement, _notes, asked.where.text) if is_of_product else []
    found += _channels(statement, asked.channel) + _range(statement, "r.published_at", asked)
    return found + _of_version(statement, asked.where.version)


def _range(statement: Statement, column: str, asked: Filter) -> list[str]:
    ends = ((">=", asked.since), ("<", asked.until))
    return [f"{column} {sign} {statement.value(moment(end))}" for sign, end in ends if end is not None]


def _channels(statement: Statement, wanted: Values) -> list[str]:
    held = (*wanted.any, *wanted.all)
    found = [f"r.channel IN ({statement.list(held)})"] if held else []
    return found + ([f"r.channel NOT IN ({statement.list(wanted.none)})"] if wanted.none else [])


def _of_version(statement: Statement, wanted: Values) -> list[str]:
    """Conditions of releases: versions are compared in their order, and are alike with `v` before or `.0` after."""
    either: list[str] = []
    for text in wanted.any:
        plain = text.lower().removeprefix("v")
        either.append(f"lower(r.version) IN ({statement.list([plain, f'v{plain}', f'{plain}.0'])})")
    found = [f"({' OR '.join(either)})"] if either else []
    for text in wanted.all:
        match = _COMPARISON.fullmatch(text)
        found += [f"r.sort_key {match[1]} {statement.value(sort_key(match[2]))}"] if match else []
    return found + [f"lower(r.version) <> {statement.value(text.lower())}" for text in wanted.none]


def _conditions(statement: Statement, asked: Filter, without: Sequence[str]) -> list[str]:
    found: list[str] = []
    for slot, wanted in conditions(asked):
        if slot in without or slot == "version":
            continue
        found += _of_bits(statement, slot, wanted) if slot in _BITS else _joined(statement, _TESTS[slot], wanted)
    return found


def _of_bits(statement: Statement, slot: str, wanted: Values) -> list[str]:
    found: list[str] = []
    for values, test in ((wanted.any, "<> 0"), (wanted.none, "= 0")):
        if values:
            found.append(f"(c.{slot}s & {statement.value(bits(_BITS[slot], [*values]))}) {test}")
    if wanted.all:
        held = bits(_BITS[slot], [*wanted.all])
        found.append(f"(c.{slot}s & {statement.value(held)}) = {statement.value(held)}")
    return found


def _joined(statement: Statement, test: Callable[[Statement, str], str], wanted: Values) -> list[str]:
    found = [test(statement, value) for value in wanted.all]
    if wanted.any:
        found.append(f"({' OR '.join(test(statement, value) for value in wanted.any)})")
    return found + [f"NOT {test(statement, value)}" for value in wanted.none]


def _tag(statement: Statement, value: str) -> str:
    # Other letters no tag has, and two of them would mean something to LIKE.
    plain = value.lower().replace(" ", "-")
    return f"c.tags LIKE {statement.value(f'% {plain} %')}" if _TAG.fullmatch(plain) else "1 = 0"


def _org(statement: Statement, value: str) -> str:
    named = f"o.slug = {statement.value(value)} OR {ORG_KEY} = {statement.value(key(value))}"
    return f"(c.org_slug IN (SELECT o.slug FROM organisation o WHERE {named}))"


def _license(statement: Statement, value: str) -> str:
    if value == NO_LICENSE:
        return "(c.license IS NULL)"
    if value == OPEN:
        return "(c.license_key NOT IN ('-', 'proprietary'))"
    return f"(c.license_key = {statement.value(key(value))})"


def _notes(statement: Statement, value: str) -> str:
    # Words have neither of the characters that mean something to LIKE.
    held = [f"lower(coalesce(r.notes, '')) LIKE {statement.value(f'%{word}%')}" for word in words(value)]
    return f"({' AND '.join(held) or '1 = 0'})"


_TESTS: dict[str, Callable[[Statement, str], str]] = {
    "kind": lambda statement, value: f"c.kind = {statement.value(value)}",
    "access": lambda _, value: f"c.is_free = {int(value == 'free')}",
    "tag": _tag,
    "org": _org,
    "license": _license,
    "product": lambda it, value: f"(c.slug = {it.value(value)} OR c.name_key = {it.value(key(value))})",
    "title": lambda statement, value: _terms(statement, [[word] for word in words(value)], WEIGHT_OF_TITLE),
    "text": lambda statement, value: _terms(statement, [forms(word) for word in words(value)], 0),
}


def forms(word: str) -> list[str]:
    """A word in singular and plural."""
    found = [word, f"{word}s"]
    if word.endswith("s") and len(word) > 3:
        found.append(word[:-1])
    if word.endswith("ies") and len(word) > 4:
        found.append(f"{word[:-3]}y")
    if word.endswith("y"):
        found.append(f"{word[:-1]}ies")
    if word.endswith(("ches", "shes", "sses", "xes")):
        found.append(word[:-2])
    return found


def _terms(statement: Statement, wanted: Sequence[list[str]], weight: int) -> str:
    found = [_HAS_TERM.format(terms=statement.list(terms), weight=weight) for terms in wanted]
    return f"({' AND '.join(found) or '1 = 0'})"
