"""What an answer is made of.

`Answered` has, whatever was asked:

kind        products  `rows` are 1-tuples of slugs: which products
            releases  `rows` are pairs (slug, version)
            count     `total` is the number, `rows` is empty
            yes_no    `value` is the boolean, `rows` the products it is about (those found, for "is there …")
            text      a description, a comparison, publishers; `rows` are the products or organisations it is about
            refused   not understood, unknown or ambiguous; `rows` is empty, `query` None unless partly understood
rows        in the order of the answer, the first 200; `total` is how many there are
text        the answer in words, made of nothing but rows
sources     product and release each statement is from, with its address
query       the typed query that was run
confidence  1 as asked, 0.8 where names had to be corrected or the words can be read in two ways, 0 when refused
"""

from typing import Literal

import msgspec

from countersign.distribution.ask.query import Query

ReplyKind = Literal["products", "releases", "count", "yes_no", "text", "refused"]


class Source(msgspec.Struct, frozen=True):
    """Where a statement of an answer is from; `release` is a version of the product."""

    product: str
    release: str | None
    url: str


class Answered(msgspec.Struct, frozen=True):
    """A question answered; see the head of this file for its members."""

    kind: ReplyKind
    text: str
    rows: tuple[tuple[str, ...], ...]
    total: int
    value: bool | None
    sources: tuple[Source, ...]
    query: Query | None
    confidence: float
    candidates: tuple[str, ...] = ()
