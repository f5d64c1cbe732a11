"""Text formats. A format checks a text and returns its canonical form, so that equal values are stored in the same
form."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from ipaddress import IPv6Address
from typing import Literal, TypeAlias

from countersign.declare.errors import BadValue

Format: TypeAlias = Literal["email", "phone", "url", "country", "tax_id", "reference"]

MAX_EMAIL = 254
MAX_URL = 1_000

COUNTRIES = frozenset(
    {
        "AD", "AE", "AF", "AG", "AI", "AL", "AM", "AO", "AQ", "AR", "AS", "AT", "AU", "AW", "AX", "AZ", "BA", "BB",
        "BD", "BE", "BF", "BG", "BH", "BI", "BJ", "BL", "BM", "BN", "BO", "BQ", "BR", "BS", "BT", "BV", "BW", "BY",
        "BZ", "CA", "CC", "CD", "CF", "CG", "CH", "CI", "CK", "CL", "CM", "CN", "CO", "CR", "CU", "CV", "CW", "CX",
        "CY", "CZ", "DE", "DJ", "DK", "DM", "DO", "DZ", "EC", "EE", "EG", "EH", "ER", "ES", "ET", "FI", "FJ", "FK",
        "FM", "FO", "FR", "GA", "GB", "GD", "GE", "GF", "GG", "GH", "GI", "GL", "GM", "GN", "GP", "GQ", "GR", "GS",
        "GT", "GU", "GW", "GY", "HK", "HM", "HN", "HR", "HT", "HU", "ID", "IE", "IL", "IM", "IN", "IO", "IQ", "IR",
        "IS", "IT", "JE", "JM", "JO", "JP", "KE", "KG", "KH", "KI", "KM", "KN", "KP", "KR", "KW", "KY", "KZ", "LA",
        "LB", "LC", "LI", "LK", "LR", "LS", "LT", "LU", "LV", "LY", "MA", "MC", "MD", "ME", "MF", "MG", "MH", "MK",
        "ML", "MM", "MN", "MO", "MP", "MQ", "MR", "MS", "MT", "MU", "MV", "MW", "MX", "MY", "MZ", "NA", "NC", "NE",
        "NF", "NG", "NI", "NL", "NO", "NP", "NR", "NU", "NZ", "OM", "PA", "PE", "PF", "PG", "PH", "PK", "PL", "PM",
        "PN", "PR", "PS", "PT", "PW", "PY", "QA", "RE", "RO", "RS", "RU", "RW", "SA", "SB", "SC", "SD", "SE", "SG",
        "SH", "SI", "SJ", "SK", "SL", "SM", "SN", "SO", "SR", "SS", "ST", "SV", "SX", "SY", "SZ", "TC", "TD", "TF",
        "TG", "TH", "TJ", "TK", "TL", "TM", "TN", "TO", "TR", "TT", "TV", "TW", "TZ", "UA", "UG", "UM", "US", "UY",
        "UZ", "VA", "VC", "VE", "VG", "VI", "VN", "VU", "WF", "WS", "YE", "YT", "ZA", "ZM", "ZW",
    }
)  # fmt: skip
"""The two-letter codes of ISO 3166-1."""

COUNTRY_NAMES: Mapping[str, str] = {
    "AE": "United Arab Emirates, Vereinigte Arabische Emirate", "AR": "Argentina, Argentinien",
    "AT": "Austria, Österreich", "AU": "Australia, Australien", "BE": "Belgium, Belgien", "BG": "Bulgaria, Bulgarien",
    "BR": "Brazil, Brasilien", "CA": "Canada, Kanada", "CH": "Switzerland, Schweiz, die Schweiz", "CL": "Chile",
    "CN": "China", "CO": "Colombia, Kolumbien", "CY": "Cyprus, Zypern",
    "CZ": "Czechia, Czech Republic, Tschechien, Tschechische Republik", "DE": "Germany, Deutschland",
    "DK": "Denmark, Dänemark", "EE": "Estonia, Estland", "EG": "Egypt, Ägypten", "ES": "Spain, Spanien",
    "FI": "Finland, Finnland", "FR": "France, Frankreich",
    "GB": "United Kingdom, UK, Great Britain, England, Scotland, Wales, Vereinigtes Königreich, Großbritannien, "
    "Schottland", "GR": "Greece, Griechenland", "HK": "Hong Kong, Hongkong", "HR": "Croatia, Kroatien",
    "HU": "Hungary, Ungarn", "ID": "Indonesia, Indonesien", "IE": "Ireland, Irland", "IL": "Israel",
    "IN": "India, Indien", "IS": "Iceland, Island", "IT": "Italy, Italien", "JP": "Japan", "KE": "Kenya, Kenia",
    "KR": "South Korea, Südkorea", "LI": "Liechtenstein", "LT": "Lithuania, Litauen", "LU": "Luxembourg, Luxemburg",
    "LV": "Latvia, Lettland", "MA": "Morocco, Marokko", "MT": "Malta", "MX": "Mexico, Mexiko", "MY": "Malaysia",
    "NG": "Nigeria", "NL": "Netherlands, the Netherlands, Holland, Niederlande, die Niederlande",
    "NO": "Norway, Norwegen", "NZ": "New Zealand, Neuseeland", "PE": "Peru", "PH": "Philippines, Philippinen",
    "PL": "Poland, Polen", "PT": "Portugal", "RO": "Romania, Rumänien", "RS": "Serbia, Serbien",
    "RU": "Russia, Russland", "SA": "Saudi Arabia, Saudi-Arabien", "SE": "Sweden, Schweden",
    "SG": "Singapore, Singapur", "SI": "Slovenia, Slowenien", "SK": "Slovakia, Slowakei, die Slowakei",
    "TH": "Thailand", "TN": "Tunisia, Tunesien", "TR": "Turkey, Türkiye, Türkei, die Türkei", "TW": "Taiwan",
    "UA": "Ukraine", "US": "United States, United States of America, USA, America, Vereinigte Staaten, Amerika",
    "VN": "Vietnam", "ZA": "South Africa, Südafrika",
}  # fmt: skip
"""The English and German names of common countries, so that an error can name the code."""

_NAMED = {name.casefold(): code for code, names in COUNTRY_NAMES.items() for name in names.split(", ")}

_LOCAL = re.compile(r"[^\s@\"(),:;<>\[\]\\\x00-\x20\x7f]{1,64}")
MAX_HOST, MAX_LABEL, MAX_PORT = 253, 63, 65_535
_PHONE = re.compile(r"(?P<number>\+?[0-9][0-9 ()./-]*)(?:(?:;ext=|(?:ext\.?|x) *)(?P<extension>[0-9]{1,10}))?")
_SEPARATORS = re.compile(r"[ ()./-]+")
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]{2,45}\]|[^\s/?#@:\[\]]+)(?P<port>:[0-9]{1,5})?"
    r"(?P<rest>(?:[/?#][^\s\"<>\\^`{|}]*)?)",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?![0-9])")
_TAX_ID = re.compile(r"(?=[A-Z]*[0-9])[A-Z0-9]{3,20}")
_SPACES = re.compile(r"\s+")
# The characters with the Unicode property Default_Ignorable_Code_Point that are not in category Cf.
_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_DASHES = re.compile("[\u2010-\u2015\u2043\u2212\u02d7]")


def email(text: str) -> str:
    """Return an e-mail address with its domain in lower case.

    Raises:
        BadValue: the text is not an address of the form name@domain.
    """
    local, at, domain = text.strip().rpartition("@")
    domain = _lowered(domain)
    is_local = _LOCAL.fullmatch(local) is not None and "" not in local.split(".")
    if (
        not at
        or len(local) + len(domain) >= MAX_EMAIL
        or not is_local
        or _is_invisible(local)
        or not _is_domain(domain)
    ):
        raise BadValue("must be an e-mail address like name@example.com")
    return f"{local}@{domain}"


def _lowered(host: str) -> str:
    """Return a host in lower case and in composed form (NFC), so that a second call does not change it."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", host).lower())


def _is_domain(text: str) -> bool:
    labels = text.split(".")
    return _is_host(text) and len(labels) > 1 and not labels[-1].isdigit()


def _is_host(text: str) -> bool:
    return len(text) <= MAX_HOST and all(_is_label(word) for word in text.split("."))


def _is_label(text: str) -> bool:
    """Return whether the text is a label of a host name. A label consists of letters, marks, digits, and hyphens that
    are neither first nor last."""
    fits = all(
        character.isalnum() or character == "-" or unicodedata.category(character) in ("Mn", "Mc") for character in text
    )
    return fits and 0 < len(text) <= MAX_LABEL and text[0].isalnum() and text[-1] != "-"


def _is_invisible(text: str) -> bool:
    """Return whether the text contains invisible characters, which may change how other text is displayed."""
    return not text.isascii() and any(unicodedata.category(character) in ("Cf", "Zl", "Zp") for character in text)


def phone(text: str) -> str:
    """Return a telephone number without separators: +49301234567. An extension follows as ;ext=12.

    Raises:
        BadValue: the text contains other characters, or does not have 3 to 15 digits.
    """
    text = text.strip()
    match = _PHONE.fullmatch(text.replace("(0)", "") if text.startswith(("+", "00")) else text)
    number = "" if match is None else _SEPARATORS.sub("", match["number"])
    if number.startswith("00"):
        number = f"+{number[2:]}"
    if match is None or not 3 <= len(number.lstrip("+")) <= 15:
        raise BadValue("must be a telephone number of 3 to 15 digits like +49 30 1234567")
    return number if match["extension"] is None else f"{number};ext={match['extension']}"


def url(text: str) -> str:
    """Return a web address with its scheme (default: https) and host in lower case.

    Raises:
        BadValue: the scheme is not http or https, the address has a user name or no host, or the port is above 65535.
    """
    text = text.strip()
    whole = text if _SCHEME.match(text) else f"https://{text.removeprefix('//')}"
    match = None if len(whole) > MAX_URL or _is_invisible(whole) else _URL.fullmatch(whole)
    host, port = ("", "") if match is None else (_lowered(match["host"]), match["port"] or "")
    if match is None or int(port[1:] or 0) > MAX_PORT or not _is_address(host, needs_dot=whole != text):
        raise BadValue("must be a web address like https://example.com, with the scheme https or http")
    return f"{match['scheme'].lower()}://{host}{port}{match['rest']}"


def _is_address(host: str, *, needs_dot: bool) -> bool:
    """Return whether the text is an IPv6 address in brackets or a host name. With `needs_dot`, a host name must contain
    a dot."""
    if host.startswith("["):
        return _is_ipv6(host[1:-1])
    return _is_host(host) and ("." in host or not needs_dot)


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def country(text: str) -> str:
    """Return a two-letter country code of ISO 3166-1 in capitals.

    Raises:
        BadValue: the code does not exist.
    """
    code = text.strip().upper()
    if code in COUNTRIES:
        return code
    named = _NAMED.get(" ".join(text.casefold().split()))
    example = "FR, JP; the list is at https://www.iso.org/obp/ui" if named is None else f"write {named}"
    raise BadValue(f"must be a country's two-letter code as in ISO 3166-1: {example}")


def tax_id(text: str) -> str:
    """Return a tax number in capitals, without spaces and punctuation.

    Check digits differ by country and are not checked.

    Raises:
        BadValue: the number does not consist of 3 to 20 letters and digits with at least one digit.
    """
    number = re.sub(r"[\s./-]+", "", text).upper()
    if not _TAX_ID.fullmatch(number):
        raise BadValue("must be a tax number of 3 to 20 letters and digits, with at least one digit")
    return number


def reference(text: str) -> str:
    """Return a reference in canonical form.

    The result has no spaces around it, only single spaces inside, no invisible characters, and one kind of hyphen. It
    is in compatibility form (NFKC), so full-width letters become plain letters. Letters of different scripts that look
    alike remain different. Stored values of earlier versions are not converted.

    Raises:
        BadValue: the text is blank. Blank references are refused, because two of them would count as equal.
    """
    if not text.isascii():
        # Remove these characters first, so that NFKC can compose the characters around them.
        text = "".join(character for character in _IGNORABLE.sub("", text) if unicodedata.category(character) != "Cf")
        text = _DASHES.sub("-", unicodedata.normalize("NFKC", text))
    plain_text = _SPACES.sub(" ", text).strip()
    if not plain_text:
        raise BadValue("must not be blank; give null where there is no reference")
    return plain_text


FORMATS: Mapping[Format, Callable[[str], str]] = {
    "email": email,
    "phone": phone,
    "url": url,
    "country": country,
    "tax_id": tax_id,
    "reference": reference,
}
CASELESS: frozenset[Format] = frozenset({"reference"})
"""The formats whose texts are compared without regard to case."""

SCHEMA_FORMATS: Mapping[Format, str] = {"email": "email", "url": "uri"}
"""The corresponding formats of JSON Schema. Formats that JSON Schema does not define have no entry."""
