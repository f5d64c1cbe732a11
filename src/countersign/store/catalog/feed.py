"""A product's published releases as an Atom feed (RFC 4287), for whatever reads feeds."""

import re
from collections.abc import Sequence
from html import escape

import msgspec

from countersign.kernel import clock
from countersign.store.catalog.queries import Position
from countersign.store.catalog.schemas import ProductDetail

ATOM = "application/atom+xml"
MAX_ENTRIES = 50
_NOT_OF_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_detail = msgspec.json.Decoder(ProductDetail)


def feed(encoded: bytes, newest: Sequence[Position], root_url: str, base_url: str) -> bytes:
    """The feed of the product with this encoded detail and these published releases, the newest first. Its ids are
    those of product and release: they stay when either is renamed."""
    product = _detail.decode(encoded)
    page = f"{root_url}/products/{product.slug}"
    updated = clock.rfc3339(clock.Instant(newest[0].at)) if newest else product.created_at
    entries = "".join(_entry(product, each, page) for each in newest)
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<id>urn:uuid:{product.id}</id><title>{_text(product.title)}</title><updated>{updated}</updated>"
        f"<author><name>{_text(product.org)}</name></author>"
        f'<link rel="alternate" type="text/html" href="{_text(page)}"/>'
        f'<link rel="self" type="{ATOM}" href="{_text(f"{base_url}/products/{product.slug}/feed")}"/>{entries}</feed>\n'
    )
    return text.encode()


def _entry(product: ProductDetail, at: Position, page: str) -> str:
    release = at.release
    moment = clock.rfc3339(clock.Instant(at.at))
    return (
        f"<entry><id>urn:uuid:{at.id}</id>"
        f"<title>{_text(f'{product.title} {release.version}')}</title>"
        f"<published>{moment}</published><updated>{moment}</updated>"
        f'<category term="{release.channel}"/>'
        f'<link rel="alternate" type="text/html" href="{_text(f"{page}?channel={release.channel}")}"/>'
        f'<content type="text">{_text(release.notes or "")}</content></entry>'
    )


def _text(value: str) -> str:
    """Somebody's text inside of XML, without what XML cannot hold."""
    return escape(_NOT_OF_XML.sub("", value))
