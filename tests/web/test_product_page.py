"""A product's page without scripts, as search engines and link previews get it."""

import html
import json
import re

import httpx

from countersign.web import store_site
from tests.servers.countersign import Running

PERSON = {"Accept": "text/html"}


def data_of(page: str, kind: str) -> dict[str, object]:
    match = re.search(rf'<script type="{re.escape(kind)}"[^>]*>(.*?)</script>', page)
    assert match is not None
    return json.loads(match[1])


def test_a_product_is_readable_without_a_script(demo: Running, requires_built_pages: None) -> None:
    page = httpx.get(f"{demo.url}/products/aurora-freight", headers=PERSON)

    assert page.status_code == 200
    assert "<title>Aurora Freight · " in page.text
    assert "Haul impossible cargo" in page.text
    assert 'href="/api/v1/artifacts/' in page.text
    assert f'<link rel="canonical" href="{demo.url}/products/aurora-freight">' in page.text
    assert '<meta property="og:title" content="Aurora Freight">' in page.text
    linked = data_of(page.text, "application/ld+json")
    assert linked["name"] == "Aurora Freight"
    assert linked["softwareVersion"] == "1.4.0"


def test_the_first_sentence_of_the_summary_is_below_the_title_and_the_rest_above_the_description(
    demo: Running, requires_built_pages: None
) -> None:
    page = httpx.get(f"{demo.url}/products/aurora-freight", headers=PERSON).text

    assert '<p class="subtitle">Haul impossible cargo across a frozen moon.</p>' in page
    about_position = page.index("<h2>About</h2>")
    assert about_position < page.index("Plan the route, balance the load and hope the ice holds.</p>", about_position)


def property_of(page: str, name: str) -> str:
    match = re.search(rf'<meta property="{re.escape(name)}" content="([^"]*)">', page)
    assert match is not None, name
    return html.unescape(match[1])


def test_link_previews_show_the_title_a_sentence_and_a_picture(demo: Running, requires_built_pages: None) -> None:
    pages = {"products/aurora-freight": "Aurora Freight", "publishers/northwind-games": "Northwind Games"}
    for path, title in pages.items():
        page = httpx.get(f"{demo.url}/{path}", headers=PERSON).text

        assert property_of(page, "og:title") == title
        assert property_of(page, "og:url") == f"{demo.url}/{path}"
        assert len(property_of(page, "og:description")) > 20
        assert "**" not in property_of(page, "og:description")
        picture = property_of(page, "og:image")
        assert picture.startswith(f"{demo.url}/")
        assert httpx.get(picture).headers["content-type"] == "image/png"


def test_the_page_embeds_the_response_of_the_api_for_the_script(demo: Running, requires_built_pages: None) -> None:
    page = httpx.get(f"{demo.url}/products/aurora-freight", headers=PERSON)
    api = httpx.get(f"{demo.url}/api/v1/products/aurora-freight").json()

    assert data_of(page.text, "application/json")["/api/v1/products/aurora-freight"] == api


def test_a_missing_product_is_a_404_page_for_people_too(demo: Running, requires_built_pages: None) -> None:
    page = httpx.get(f"{demo.url}/products/none", headers=PERSON)

    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")


def test_every_page_of_the_store_links_to_its_description_for_programs(
    demo: Running, requires_built_pages: None
) -> None:
    for path in ("/", "/products/harbour-of-small-lights"):
        links = httpx.head(f"{demo.url}{path}", headers={"Accept": "*/*"}).headers["link"]
        for target in re.findall("<([^>]+)>", links):
            assert httpx.get(f"{demo.url}{target}").is_success, target
        assert '</auth.md>; rel="service-doc"' in links
        assert '</llms.txt>; rel="describedby"' in links


def test_the_list_is_readable_without_a_script(demo: Running, requires_built_pages: None) -> None:
    page = httpx.get(f"{demo.url}/?kind=tool&unknown=1", headers=PERSON)

    assert 'href="/products/awl"' in page.text
    assert "Aurora Freight" not in page.text


def test_a_publisher_is_readable_without_a_script(demo: Running, requires_built_pages: None) -> None:
    page = httpx.get(f"{demo.url}/publishers/northwind-games", headers=PERSON)
    api = httpx.get(f"{demo.url}/api/v1/publishers/northwind-games").json()

    assert page.status_code == 200
    assert f"<title>{api['name']} · " in page.text
    assert f'<link rel="canonical" href="{demo.url}/publishers/northwind-games">' in page.text
    assert 'href="/products/harbour-of-small-lights"' in page.text
    replies = data_of(page.text, "application/json")
    assert replies["/api/v1/publishers/northwind-games"] == api
    assert len(replies) == 2


def test_a_missing_publisher_is_a_404_page_for_people_too(demo: Running, requires_built_pages: None) -> None:
    page = httpx.get(f"{demo.url}/publishers/none", headers=PERSON)

    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")


def test_markup_in_the_text_of_a_publisher_is_shown_as_text() -> None:
    # Private function, because every value in a page passes through it.
    json_text = store_site._json({"title": "</script><script>alert(1)</script><!--\u2028"})

    assert "<" not in json_text
    assert json.loads(json_text) == {"title": "</script><script>alert(1)</script><!--\u2028"}
    assert html.escape("<b>") not in json_text
