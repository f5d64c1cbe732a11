"""Formats: valid text is stored in one form, invalid text is refused, and no text takes long."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from countersign.declare import BadValue, Text
from countersign.declare.fields.formats import COUNTRIES, COUNTRY_NAMES, FORMATS, Format

FITTING: list[tuple[Format, str, str]] = [
    ("email", " Ada@Mail.EXAMPLE ", "Ada@mail.example"),
    ("email", "ada+tag@bücher.example", "ada+tag@bücher.example"),
    ("phone", "+49 (0)30 / 123-45", "+493012345"),
    ("phone", "0049 30 12345", "+493012345"),
    ("phone", "030 12345 ext. 7", "03012345;ext=7"),
    ("url", "Example.COM/Path?q=1", "https://example.com/Path?q=1"),
    ("url", "HTTP://localhost:8080", "http://localhost:8080"),
    ("url", "https://BU\u0308CHER.example", "https://b\u00fccher.example"),
    (
        "url",
        "https://\u0939\u093f\u0928\u094d\u0926\u0940.example/",
        "https://\u0939\u093f\u0928\u094d\u0926\u0940.example/",
    ),
    ("url", "https://[::1]:65535/x", "https://[::1]:65535/x"),
    ("email", "a@\u0130x.example", "a@i\u0307x.example"),
    ("country", " fr", "FR"),
    ("tax_id", "de 123.456-789", "DE123456789"),
    ("reference", " RF18  539 ", "RF18 539"),
    ("reference", "R\ufe0fF\u115f1\u034f8\u2013\uff15\u00ad39\u3164", "RF18-539"),
    ("reference", "a\u200b\u0301", "\u00e1"),
]
UNFITTING: list[tuple[Format, str]] = [
    *(("email", text) for text in ("ada", "ada@example", "a b@x.example", "a..b@x.example", "a@b@x.example")),
    ("email", "ada\u202e@x.example"),
    *(("phone", text) for text in ("12", "call me", "+1234567890123456", "+49 30 x", "++49301")),
    *(("url", text) for text in ("javascript:alert(1)", " JaVaScript:alert(1)", "java\nscript:alert(1)")),
    *(("url", text) for text in ("data:text/html,x", "ftp://x.example", "https://", "https://user:pass@x.example")),
    *(("url", text) for text in ("nowhere", "https://a b.example", "https://a.example:65536", "https://[::::]")),
    *(("url", text) for text in ("https://-a.example", "https://a-.example", "https://\u0307a.example")),
    *(("reference", text) for text in ("", " ", "\t\n", "\ufe0f", "\u115f\u200b")),
    *(("country", text) for text in ("XX", "FRA", "F1", "UK")),
    *(("tax_id", text) for text in ("x", "ABC", "12345678901234567890123", "DE<1>")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "stored_text"), FITTING)
def test_a_valid_value_is_stored_in_one_form(name: Format, text: str, stored_text: str) -> None:
    assert Text(format=name).read(text) == stored_text
    assert Text(format=name).read(stored_text) == stored_text


@pytest.mark.parametrize(("name", "text"), UNFITTING)
def test_an_invalid_value_is_refused(name: Format, text: str) -> None:
    with pytest.raises(BadValue, match=r"must (not )?be"):
        Text(format=name).read(text)


@given(st.sampled_from(sorted(FORMATS)), st.text(max_size=60))
def test_any_text_is_refused_or_has_a_stable_normal_form(name: Format, text: str) -> None:
    stays(name, text)


def stays(name: Format, text: str) -> None:
    """Require that the normal form of a text stays the same when it is normalised again."""
    try:
        stored_text = FORMATS[name](text)
    except BadValue:
        return
    assert FORMATS[name](stored_text) == stored_text


@given(st.text(alphabet="aB.-1\u0130\u0307\u0308\u212a\u00df\u1e9e\ua7b0@:[]/", max_size=20))
def test_any_host_is_refused_or_has_a_stable_normal_form(host: str) -> None:
    candidates: list[tuple[Format, str]] = [("email", f"a@{host}"), ("url", f"https://{host}"), ("url", host)]
    for name, text in candidates:
        stays(name, text)


COMPOSING = "a-= \u00a0\u00a8\u00ad\u034f\u0301\u0307\u0338\u1100\u1161\u115f\u2011\u2212\u200b\u3164\ufe0f\uff21\uffa0"


@given(st.text(alphabet=COMPOSING, max_size=20))
def test_any_reference_has_a_stable_normal_form(text: str) -> None:
    stays("reference", text)


def test_every_character_of_a_reference_has_a_stable_normal_form() -> None:
    for point in (*range(0xD800), *range(0xE000, sys.maxunicode + 1)):
        stays("reference", f"a{chr(point)}\u0301")


@given(st.text(alphabet="javscript:JAVSCRIPT \t\n/%0a&#;", max_size=40))
def test_a_web_address_has_the_scheme_https_or_http(text: str) -> None:
    try:
        stored_text = FORMATS["url"](text)
    except BadValue:
        return
    assert stored_text.startswith(("https://", "http://"))


def test_the_countries_match_the_standard() -> None:
    assert len(COUNTRIES) == 249
    assert {"AT", "DE", "FR", "JP", "NZ", "UA", "ZW"} <= COUNTRIES


@pytest.mark.parametrize(
    ("country_name", "code"),
    [("Deutschland", "DE"), ("germany", "DE"), (" Vereinigtes  KÖNIGREICH", "GB"), ("UK", "GB"), ("USA", "US")],
)
def test_a_country_that_is_named_is_refused_with_its_code(country_name: str, code: str) -> None:
    with pytest.raises(BadValue, match=f"two-letter code as in ISO 3166-1: write {code}$"):
        Text(format="country", max_length=2).read(country_name)


def test_another_text_for_a_country_is_refused_with_an_example_and_where_to_look() -> None:
    with pytest.raises(BadValue, match=r"FR, JP; the list is at https://www\.iso\.org/obp/ui$"):
        Text(format="country", max_length=2).read("Atlantis")


def test_every_named_country_has_one_existing_code() -> None:
    names = [name.casefold() for country_list in COUNTRY_NAMES.values() for name in country_list.split(", ")]
    assert set(COUNTRY_NAMES) <= COUNTRIES
    assert len(names) == len(set(names))


def test_a_text_is_measured_in_its_format() -> None:
    assert Text(format="country", max_length=2).read(" fr ") == "FR"
    with pytest.raises(BadValue, match="at most"):
        Text(format="reference", max_length=5).read("RF 123")
    with pytest.raises(BadValue, match="at most"):
        Text(format="reference", max_length=5).read(" " * 1_001)
