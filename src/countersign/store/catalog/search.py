"""Search: split texts into words, tolerate one typing error per word, and build the SQL of one page of products."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from countersign.kernel.clock import Instant
from countersign.kernel.database.port import Value
from countersign.kernel.normalization import folded

_WORD = re.compile(r"[^\W_]+")
MAX_WORD = 40
MAX_WORDS = 400
MIN_CORRECTED_LENGTH = 4


def words(text: str) -> list[str]:
    """The words of a text in order: NFKD-normalized, without accents, in lower case, at most 40 characters each."""
    return [word[:MAX_WORD] for word in _WORD.findall(folded(text))][:MAX_WORDS]


def deletion_variants(word: str) -> set[str]:
    """The word and every variant with one letter deleted; empty for words below four letters.

    Two words share a variant if they differ by one inserted, deleted, replaced or transposed letter
    (symmetric-delete spelling correction).
    """
    if len(word) < MIN_CORRECTED_LENGTH:
        return set()
    return {word, *(word[:index] + word[index + 1 :] for index in range(len(word)))}


def prefix_end(word: str) -> str:
    """The exclusive upper bound, by code point, of the terms that a search word matches as a prefix.

    A single letter matches only itself, because as a prefix it would match a large part of the catalog.
    """
    return word + ("\U0010ffff" if len(word) > 1 else " ")


def edit_distance(text: str, other_text: str, limit: int) -> int | None:
    """Return the number of inserted, deleted, replaced or transposed letters, or None if it exceeds the limit."""
    if abs(len(text) - len(other_text)) > limit or len({*text} ^ {*other_text}) > 2 * limit:
        return None
    previous_row: list[int] = []
    row = list(range(len(other_text) + 1))
    for index, letter in enumerate(text, 1):
        row_before_previous, previous_row, row = previous_row, row, [index]
        for column, target in enumerate(other_text, 1):
            costs = [previous_row[column] + 1, row[-1] + 1, previous_row[column - 1] + (letter != target)]
            if index > 1 and column > 1 and text[index - 2 : index] == target + other_text[column - 2]:
                costs.append(row_before_previous[column - 2] + 1)
            row.append(min(costs))
        if min(row) > limit:
            return None
    return row[-1] if row[-1] <= limit else None


MAX_SEARCH_WORDS = 8

VISIBLE_TO_ALL = "e.status = 'public'"
BY_RELEVANCE = "-hit.score, e.title, e.product_id"
ORDERS_OF_FACETS = ("title", "-published_at")
"""The orders in which the table `catalog_facet` has an index."""
RANKED = {"-updated_at": "k.updated_at", "-downloads_7d": "k.downloads_7d"}
"""Maps each order to the column of the table `catalog_index` that it sorts by, highest value first."""
RARE_FACET_PREFIXES = ("tag:", "org:")
"""The prefixes of facets that may be rare, which means that few products have them."""
INDEXED_FACET_PREFIXES = ("kind:", "access:")
"""The prefixes of facets that are tested with columns of `catalog_index`. The table has indexes for these columns, in
the orders of `RANKED`."""
HAS_FACET = """
    EXISTS (
        SELECT 1 FROM catalog_facet f
        WHERE f.facet = {facet} AND f.title = e.title AND f.product_id = e.product_id
    )
"""
HAS_RELEASE = """
    EXISTS (
        SELECT 1 FROM release r
        WHERE r.product_id = e.product_id AND r.status = 'published' AND r.channel = {channel}
            AND r.published_at >= {since}
    )
"""
# The terms that a mistyped word may mean. Terms that the word matches without a correction are left out, since their
# scores are higher. The limit keeps PostgreSQL from reading every term of the catalog.
CORRECTIONS = """(
            SELECT term
            FROM catalog_typo
            WHERE shortened IN ({typos}) AND NOT (term >= {word} AND term < {end})
            ORDER BY shortened, term
            LIMIT 300
        )"""
# The score of one search word for one product. An exact match scores highest, then a prefix, then a typing error.
WORD_HITS = f"""
    SELECT product_id, max(score) AS score
    FROM (
        SELECT product_id, weight * CASE WHEN term = {{word}} THEN 4 ELSE 2 END AS score
        FROM catalog_term
        WHERE term >= {{word}} AND term < {{end}}
        UNION ALL
        SELECT t.product_id, t.weight AS score
        FROM {CORRECTIONS} AS y
        CROSS JOIN catalog_term t
        WHERE t.term = y.term
    ) AS scores
    GROUP BY product_id
"""


# SQLite and PostgreSQL test this for each product, since its OFFSET keeps it from becoming a join.
HAS_WORD = f"""
    EXISTS (
        SELECT 1
        FROM catalog_term t
        WHERE t.product_id = e.product_id
            AND (
                (t.term >= {{word}} AND t.term < {{end}})
                OR t.term IN {CORRECTIONS}
            )
        LIMIT 1 OFFSET 0
    )
"""
MIN_COMMON = 5_000
"""If more products than this have a word or a facet, products are tested for it in the order of the page."""
MAX_TESTED = 2_000
"""The maximum number of products that are tested to fill a page of one search word."""
SCORE_OF_TITLE = 32
"""The score of a product with the searched word in its title, which is the highest score of one word."""


@dataclass(slots=True)
class SqlBuilder:
    """Collects the values of an SQL statement, and returns their numbered placeholders."""

    values: list[Value] = field(default_factory=lambda: list[Value]())

    def add(self, value: Value) -> str:
        """Add a value, and return its placeholder."""
        self.values.append(value)
        return f"${len(self.values)}"

    def add_all(self, values: Sequence[Value]) -> str:
        """Add the values, and return their placeholders, separated by commas."""
        first_number = len(self.values) + 1
        self.values.extend(values)
        return ", ".join([f"${number}" for number in range(first_number, len(self.values) + 1)])


@dataclass(frozen=True, slots=True)
class PageQuery:
    """One page of products: facets and words that must all match, order, position and limit.

    `orgs` are the organisations whose drafts the caller may see; `after` is the sort key of the last row before
    the page (title and id; published_at, updated_at or downloads and id; or negated score, title and id). `since` is
    the lower bound of published_at; with `channel`, of a release in that channel.
    """

    facets: Sequence[str]
    words: Sequence[str]
    sort: str
    after: Sequence[str | int]
    limit: int
    orgs: Sequence[str] = ()
    since: Instant | None = None
    channel: str | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether an index returns the page without reading many other rows."""
        return self.sort == "title" and not self.words and len(self.facets) <= 1 and self.since is None


    @property
    def possibly_rare_facet(self) -> str | None:
        """The facet that may be rare, if the page has a ranked order and no search words. For a rare facet, the page
        reads all products with it, instead of testing products in their order."""
        if self.sort not in RANKED or self.words:
            return None
        return next((facet for facet in self.facets if facet.startswith(RARE_FACET_PREFIXES)), None)

    @property
    def only_word(self) -> str | None:
        """The search word, if the page has one and no other condition."""
        return self.words[0] if len(self.words) == 1 and not self.facets and self.since is None else None


def search_words(question: str) -> list[str]:
    """The distinct words of a search, at most eight."""
    return list(dict.fromkeys(words(question)))[:MAX_SEARCH_WORDS]


def page_statement(query: PageQuery, rare_facet: str | None = None) -> tuple[str, list[Value]]:
    """The statement and its values. Rows are title, product id, published_at, score, card, status, etag. The score is
    the score of the search, or in a ranked order the value of the column. `rare_facet` is a facet of the query that few
    products have: a ranked page then reads all of them."""
    statement = SqlBuilder()
    source, conditions, facets = _source(statement, query, rare_facet)
    if query.words:
        source += f" JOIN ({_hits_statement(statement, query.words)}) AS hit ON hit.product_id = e.product_id"
    conditions.append(_visibility_condition(statement, query.orgs))
    conditions += [HAS_FACET.format(facet=statement.add(facet)) for facet in facets]
    is_facet_first = source.startswith("catalog_facet")
    if query.since is not None:
        conditions.append(_since_condition(statement, query.since, query.channel, is_facet_first=is_facet_first))
    order, position = _order(statement, query, is_facet_first=is_facet_first)
    conditions += position
    score = RANKED.get(query.sort) or ("hit.score" if query.words else "0")
    text = f"""
        SELECT e.title, e.product_id, e.published_at, {score} AS score, e.card, e.status, e.etag
        FROM {source}
        WHERE {" AND ".join(conditions)}
        ORDER BY {order}
        LIMIT {statement.add(query.limit)}
    """
    return text, statement.values


def title_match_statement(query: PageQuery) -> tuple[str, list[Value]] | None:
    """The statement for the products of a page that have the searched word in their titles, with its values. Its rows
    have the columns of `page_statement`.

    No other product has a higher score. So if these products fill the page, the other matches need not be read. Return
    None if the page has other conditions or another order, or continues after the products with the word in the title.
    """
    word = query.only_word
    if word is None or query.sort != "relevance" or (query.after and query.after[0] != -SCORE_OF_TITLE):
        return None
    statement = SqlBuilder()
    word_condition = f"term = {statement.add(word)} AND weight >= 8"
    if query.after:
        word_condition += f" AND (title, product_id) > ({statement.add_all(query.after[1:])})"
    text = f"""
        SELECT e.title, e.product_id, e.published_at, {SCORE_OF_TITLE} AS score, e.card, e.status, e.etag
        FROM (
            SELECT title, product_id
            FROM catalog_term
            WHERE {word_condition}
            ORDER BY title, product_id
            LIMIT {MAX_TESTED}
        ) AS t
        CROSS JOIN catalog_entry e
        WHERE e.product_id = t.product_id AND {_visibility_condition(statement, query.orgs)}
        ORDER BY t.title, t.product_id
        LIMIT {statement.add(query.limit)}
    """
    return text, statement.values


def common_word_statement(word: str) -> tuple[str, list[Value]]:
    """The statement that returns a row if many products have the word, and its values."""
    text = "SELECT 1 FROM catalog_term WHERE term >= $1 AND term < $2 LIMIT 1 OFFSET $3"
    return text, [word, prefix_end(word), MIN_COMMON]


def common_facet_statement(facet: str) -> tuple[str, list[Value]]:
    """The statement that returns a row if many products have the facet, and its values."""
    return "SELECT 1 FROM catalog_facet WHERE facet = $1 LIMIT 1 OFFSET $2", [facet, MIN_COMMON]


def common_word_page_statement(query: PageQuery, word: str) -> tuple[str, list[Value]]:
    """The statement of a page in the order of titles that tests the next `MAX_TESTED` public products for its only
    search word, and its values. Its rows are the first rows of `page_statement`, with the score 0. It fills the page if
    many products have the word."""
    statement = SqlBuilder()
    position = f" AND (title, product_id) > ({statement.add_all(query.after)})" if query.after else ""
    matches = HAS_WORD.format(
        word=statement.add(word),
        end=statement.add(prefix_end(word)),
        typos=statement.add_all(sorted(deletion_variants(word)) or [word]),
    )
    text = f"""
        SELECT c.title, c.product_id, c.published_at, 0 AS score, c.card, c.status, c.etag
        FROM (
            SELECT e.title, e.product_id
            FROM (
                SELECT title, product_id
                FROM catalog_entry
                WHERE status = 'public'{position}
                ORDER BY title, product_id
                LIMIT {MAX_TESTED}
            ) AS e
            WHERE {matches}
            ORDER BY e.title, e.product_id
            LIMIT {statement.add(query.limit)}
        ) AS f
        JOIN catalog_entry c ON c.product_id = f.product_id
        ORDER BY c.title, c.product_id
    """
    return text, statement.values


def _source(statement: SqlBuilder, query: PageQuery, rare_facet: str | None) -> tuple[str, list[str], list[str]]:
    """Return the tables to read, their conditions, and the facets that remain to be tested. If an index has the order
    of the page, its table is read first. SQLite keeps the order of tables only in a CROSS JOIN. Otherwise it would read
    the whole catalog for four facets."""
    if query.sort in RANKED:
        return _ranked_source(statement, query.facets, rare_facet)
    facets = list(query.facets)
    if query.sort in ORDERS_OF_FACETS and facets and not query.words:
        conditions = ["e.product_id = d.product_id", f"d.facet = {statement.add(facets.pop(0))}"]
        return "catalog_facet d CROSS JOIN catalog_entry e", conditions, facets
    return "catalog_entry e", [], facets


def _ranked_source(
    statement: SqlBuilder, facets: Sequence[str], rare_facet: str | None
) -> tuple[str, list[str], list[str]]:
    """Do what `_source` does, for the orders in `RANKED`."""
    conditions = ["e.product_id = k.product_id"]
    conditions += [_index_condition(statement, facet) for facet in facets if facet.startswith(INDEXED_FACET_PREFIXES)]
    remaining_facets = [
        facet for facet in facets if not facet.startswith(INDEXED_FACET_PREFIXES) and facet != rare_facet
    ]
    source = "catalog_index k CROSS JOIN catalog_entry e"
    if rare_facet is not None:
        source = f"catalog_facet d CROSS JOIN {source}"
        conditions += [f"d.facet = {statement.add(rare_facet)}", "k.product_id = d.product_id"]
    return source, conditions, remaining_facets


def _index_condition(statement: SqlBuilder, facet: str) -> str:
    name, _, value = facet.partition(":")
    return f"k.kind = {statement.add(value)}" if name == "kind" else f"k.is_free = {int(value == 'free')}"


def _visibility_condition(statement: SqlBuilder, orgs: Sequence[str]) -> str:
    if not orgs:
        return VISIBLE_TO_ALL
    return f"({VISIBLE_TO_ALL} OR e.org_id IN ({statement.add_all(orgs)}))"


def _since_condition(
    statement: SqlBuilder, since_instant: Instant, channel: str | None, *, is_facet_first: bool
) -> str:
    if channel is None:
        return f"{'d' if is_facet_first else 'e'}.published_at >= {statement.add(since_instant)}"
    return HAS_RELEASE.format(channel=statement.add(channel), since=statement.add(since_instant))


def _order(statement: SqlBuilder, query: PageQuery, *, is_facet_first: bool) -> tuple[str, list[str]]:
    """The ORDER BY clause, and the condition that selects the rows after the last row of the previous page."""
    after_values = [statement.add(value) for value in query.after]
    alias = "d" if is_facet_first else "e"
    if query.sort == "-published_at":
        order = f"{alias}.published_at DESC, {alias}.product_id DESC"
        return order, [
            f"({alias}.published_at, {alias}.product_id) < ({', '.join(after_values)})"
        ] if after_values else []
    if query.sort in RANKED:
        column = RANKED[query.sort]
        order = f"{column} DESC, k.product_id DESC"
        return order, [f"({column}, k.product_id) < ({', '.join(after_values)})"] if after_values else []
    if query.sort == "relevance":
        return BY_RELEVANCE, [
            f"(-hit.score, e.title, e.product_id) > ({', '.join(after_values)})"
        ] if after_values else []
    order = f"{alias}.title, {alias}.product_id"
    return order, [f"({alias}.title, {alias}.product_id) > ({', '.join(after_values)})"] if after_values else []


def matching_products_statement(search_terms: Sequence[str]) -> tuple[str, list[Value]]:
    """The statement of the numbers of all products that match every word, and its values."""
    statement = SqlBuilder()
    hits = _hits_statement(statement, search_terms)
    text = f"SELECT k.number FROM ({hits}) AS hit JOIN catalog_index k ON k.product_id = hit.product_id"
    return text, statement.values


def _hits_statement(statement: SqlBuilder, search_terms: Sequence[str]) -> str:
    """The products that match every word, with the sum of their scores."""
    tables: list[str] = []
    for word in search_terms:
        typos = sorted(deletion_variants(word)) or [word]
        word_placeholder, end = statement.add(word), statement.add(prefix_end(word))
        tables.append(WORD_HITS.format(word=word_placeholder, end=end, typos=statement.add_all(typos)))
    first_table, *other_tables = (f"({table}) AS w{number}" for number, table in enumerate(tables))
    joined_tables = first_table + "".join(
        f" JOIN {other_table} ON w{number}.product_id = w0.product_id"
        for number, other_table in enumerate(other_tables, start=1)
    )
    total = " + ".join(f"w{number}.score" for number in range(len(tables)))
    return f"SELECT w0.product_id AS product_id, {total} AS score FROM {joined_tables}"
