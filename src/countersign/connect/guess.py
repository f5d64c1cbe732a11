"""The guess which columns are secret or personal. It denies by default: text that the guess cannot clear is masked
until a person says otherwise."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import chain, pairwise
from typing import Literal, TypeAlias

from countersign.connect import names
from countersign.connect.schema import Relation, TableColumn

Verdict: TypeAlias = Literal["clear", "personal", "look", "secret"]

FREE_TEXT = "TEXT"
"""The label of text that no one has looked at."""

MIN_SHARE = 0.5
MIN_SHARE_OF_ADDRESSES = 0.02
MIN_RUN = 4
"""The shortest word that is searched inside a run-together name such as `nationalidnumber`."""

SECRET_WORDS = frozenset(
    {
        *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "salt", "otp", "totp", "mfa"),
        *("apikey", "privatekey", "credential", "credentials", "kennwort", "passwort", "passwortes", "geheimnis"),
        *("contrasena", "losenord", "wachtwoord", "senha", "cvv", "cvc", "pin", "token", "tokens", "jwt", "cookie"),
        *("fingerprint", "signature", "keyhash", "hash", "digest", "crypt", "crypted", "encrypted", "ciphertext"),
    }
)
_SECRET_RUNS = ("password", "passwort", "kennwort", "secret", "apikey")
_SECRET_PAIRS = frozenset((
    *(("api", "key"), ("private", "key"), ("access", "key"), ("secret", "key"), ("auth", "key"), ("session", "key")),
    *(("encryption", "key"), ("security", "answer"), ("recovery", "code"), ("backup", "code"), ("reset", "code")),
    *(("session", "id"), ("session", "data"), ("verification", "code"), ("license", "key"), ("consumer", "key")),
))
_SECRET_PARTS = ("パスワード", "暗証", "秘密", "密码", "пароль")

# Maps a label to words of a name. A word of one language is enough: names mix languages.
LABEL_WORDS: Mapping[str, frozenset[str]] = {
    "EMAIL": frozenset({"email", "emails", "mail", "emailaddress", "epost", "courriel", "correo"}),
    "PHONE": frozenset(
        {"phone", "telephone", "mobile", "cell", "cellphone", "fax", "tel", "telefon", "handy", "phonenumber"}
    ),
    "PERSON": frozenset(
        {
            *("firstname", "lastname", "middlename", "fullname", "surname", "forename", "givenname", "familyname"),
            *("maidenname", "nickname", "vorname", "nachname", "familienname", "geburtsname", "prenom", "apellido"),
            *("ansprechpartner", "signatory", "initials", "displayname", "contactname", "personname", "realname"),
        }
    ),
    "ADDRESS": frozenset(
        {
            *("address", "addresses", "street", "postcode", "zip", "zipcode", "plz", "strasse", "hausnummer"),
            *("adresse", "anschrift", "wohnort", "ort", "city", "town", "postal", "postalcode", "district", "rue"),
            *("direccion", "streetaddress", "addressline", "location", "homepage", "adress", "county"),
        }
    ),
    "TAXID": frozenset({"taxid", "vat", "vatid", "taxnumber", "steuernummer", "steuerid", "ustid", "tin", "ein"}),
    "IDNUMBER": frozenset(
        {
            *("ssn", "passport", "nationalid", "nationalidnumber", "personnummer", "identitycard", "driverlicense"),
            *("socialsecurity", "sozialversicherungsnummer", "ausweis", "ausweisnummer", "licenseplate", "kennzeichen"),
        }
    ),
    "BANK": frozenset({"iban", "bic", "swift", "bankaccount", "accountnumber", "routingnumber", "kontonummer", "blz"}),
    "CARD": frozenset({"creditcard", "cardnumber", "pan", "kartennummer", "creditcardnumber"}),
    "IP": frozenset({"ip", "ipaddress", "ipaddr", "remoteaddr", "macaddress"}),
    "USERNAME": frozenset({"username", "login", "userid", "screenname", "handle", "benutzername", "loginid"}),
    "PHOTO": frozenset({"photo", "photograph", "avatar", "portrait", "picture", "selfie", "lichtbild"}),
}
_LABEL_OF_WORD = {word: label for label, known in LABEL_WORDS.items() for word in known}
_LABEL_PAIRS: Mapping[tuple[str, str], str] = {
    ("first", "name"): "PERSON", ("last", "name"): "PERSON", ("middle", "name"): "PERSON", ("full", "name"): "PERSON",
    ("given", "name"): "PERSON", ("family", "name"): "PERSON", ("display", "name"): "PERSON",
    ("contact", "name"): "PERSON", ("maiden", "name"): "PERSON", ("user", "name"): "USERNAME",
    ("customer", "name"): "PERSON", ("person", "name"): "PERSON", ("employee", "name"): "PERSON",
    ("tax", "id"): "TAXID", ("tax", "number"): "TAXID", ("vat", "number"): "TAXID", ("national", "id"): "IDNUMBER",
    ("social", "security"): "IDNUMBER", ("card", "number"): "CARD", ("account", "number"): "BANK",
    ("house", "number"): "ADDRESS", ("license", "plate"): "IDNUMBER", ("remote", "addr"): "IP",
}  # fmt: skip
_LABEL_PARTS: Mapping[str, str] = {
    "氏名": "PERSON", "名前": "PERSON", "姓": "PERSON", "電話": "PHONE", "携帯": "PHONE", "住所": "ADDRESS",
    "郵便": "ADDRESS", "メール": "EMAIL", "имя": "PERSON", "фамилия": "PERSON", "телефон": "PHONE", "адрес": "ADDRESS",
}  # fmt: skip

_PEOPLE = frozenset(
    {
        *("person", "people", "customer", "client", "employee", "staff", "user", "member", "patient", "student"),
        *("contact", "guest", "tenant", "applicant", "candidate", "teacher", "actor", "author", "driver", "worker"),
        *("subscriber", "passenger", "participant", "volunteer", "salesperson", "human", "profile", "lead", "payroll"),
        *("kunde", "kunden", "mitarbeiter", "person", "personal", "mitglied", "mitglieder", "benutzer", "patient"),
        *("schueler", "personen", "salary", "salaries", "gehalt", "cliente", "usuario"),
    }
)
_PEOPLE_PARTS = ("顧客", "社員", "従業員", "患者", "利用者", "会員")
_PEOPLE_RUNS = ("customer", "employee", "person", "patient", "student", "mitarbeiter", "kunde", "member")

# Words of numbers and dates about a person. Tokens stand for text only, so such a column is not declared.
_PERSONAL_VALUES = frozenset(
    {
        *("birth", "birthday", "birthdate", "dob", "born", "age", "death", "salary", "wage", "income", "payrate"),
        *("geburtsdatum", "geburtstag", "geboren", "alter", "gehalt", "lohn", "bmi", "latitude", "longitude", "lat"),
        *("lng", "lon", "gender", "sex", "religion", "ethnicity", "ethnic", "disability"),
        *("nationality", "marital", "diagnosis", "hiv", "pregnant", "geschlecht", "konfession", "ssn", "iban"),
    }
)
_PERSONAL_VALUE_PARTS = ("生年月日", "誕生日", "年齢", "給与", "性別")
_HARMLESS_IN_PEOPLE = frozenset({"active", "activebool", "enabled", "deleted", "archived"})

# A column with exactly this name has values of a small fixed vocabulary.
_CLEAR_NAMES = frozenset(
    {
        *("status", "kind", "type", "currency", "currency_code", "locale", "language", "timezone", "time_zone"),
        *("unit", "mime_type", "content_type", "color", "colour", "sku", "country_code", "iso_code"),
    }
)
MAX_CLEAR_VALUES = 40
MAX_CLEAR_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Guess:
    """The verdict on a column, the label of its tokens if it is masked, and the reason in words."""

    verdict: Verdict
    reason: str = ""
    label: str = ""


def guess(column: TableColumn, values: Sequence[str] = (), *, of_people: bool = False) -> Guess:
    """Return the verdict on a column, given different values of it. `of_people` says that each row of the table is
    about one person.

    Text is masked unless the database limits it to a list of values, or its name and all of its values are those of a
    small vocabulary. Numbers and dates are clear, except where their name or their table says that they are personal.
    """
    said = re.search(r"\bpii:([a-z]+)", column.comment.lower())
    if said:
        return Guess("personal", "the comment of the column says so", said[1].upper()[:20])
    if _is_secret(column):
        return Guess("secret", "secret")
    if column.base in ("text", "citext", "address", "other", "json", "array", "interval"):
        return _text(column, values, of_people)
    return _value(column, of_people)


def is_about_people(relation: Relation) -> bool:
    """Return whether the name of the relation says that each row is about one person."""
    parts = names.words(relation.name)
    found = {names.singular(part) for part in parts} | set(parts)
    is_run = _contains("".join(parts), _PEOPLE_RUNS)
    return is_run or bool(found & _PEOPLE) or _contains(relation.name, _PEOPLE_PARTS)


def _is_secret(column: TableColumn) -> bool:
    if column.base in ("bool", "date", "moment", "local_moment", "time", "enum"):
        return False
    parts = names.words(column.name)
    is_text = column.base in ("text", "citext", "json", "array", "bytes", "other", "uuid")
    if not _SECRET_PAIRS.isdisjoint(pairwise(parts)) or _contains(column.name, _SECRET_PARTS):
        return True
    if parts and parts[-1] in ("count", "type"):
        return False
    return _contains("".join(parts), _SECRET_RUNS) or (is_text and bool(set(parts) & SECRET_WORDS))


def _contains(text: str, parts: Iterable[str]) -> bool:
    return any(part in text for part in parts)


def _text(column: TableColumn, values: Sequence[str], of_people: bool) -> Guess:
    label = _label_of_name(column, of_people)
    shape, share = _shape(values)
    if label:
        return Guess("personal", _with_share("name", shape, share), label)
    if shape:
        return Guess("personal", f"{share:.0%} of {len(values)} values", shape)
    if column.base == "address":
        return Guess("personal", "type", "IP")
    if _is_vocabulary(column, values, of_people):
        return Guess("clear")
    return Guess("look", "text that no one has looked at", FREE_TEXT)


def _with_share(reason: str, shape: str, share: float) -> str:
    return f"{reason}, {share:.0%} of the values" if shape else reason


def _is_vocabulary(column: TableColumn, values: Sequence[str], of_people: bool) -> bool:
    if column.allowed:
        return not of_people
    name = "_".join(names.words(column.name))
    is_short = all(len(each) <= MAX_CLEAR_LENGTH for each in values) and len(set(values)) <= MAX_CLEAR_VALUES
    return name in _CLEAR_NAMES and is_short and not of_people


def _value(column: TableColumn, of_people: bool) -> Guess:
    """Return the verdict on a column that is not text. Tokens stand for text only, so it is clear or not declared."""
    parts = set(names.words(column.name))
    is_named = bool(parts & _PERSONAL_VALUES) or _contains(column.name, _PERSONAL_VALUE_PARTS)
    if is_named:
        return Guess("look", "a personal value, and tokens stand for text only")
    is_harmless = column.base in ("uuid", "bytes") or (column.base == "bool" and parts & _HARMLESS_IN_PEOPLE)
    if of_people and not is_harmless:
        return Guess("look", "a value in a table about people")
    if _label_of_name(column, of_people) in ("IDNUMBER", "TAXID", "BANK", "CARD", "PHONE"):
        return Guess("look", "a personal number, and tokens stand for text only")
    return Guess("clear")


def _label_of_name(column: TableColumn, of_people: bool) -> str:
    parts = names.words(column.name)
    if parts and parts[-1] in ("type", "count", "at") and len(parts) > 1:
        return ""
    if parts == ["name"] and of_people:
        return "PERSON"
    of_pairs = map(_LABEL_PAIRS.get, pairwise(parts))
    of_words = (_LABEL_OF_WORD.get(word) for part in parts for word in (part, names.singular(part)))
    return next(filter(None, chain(of_pairs, of_words)), "") or _label_in_run(column.name, "".join(parts))


def _label_in_run(written: str, name: str) -> str:
    """Return the label of a word in a name whose words are not divided: `kundenvorname`, or a Japanese name."""
    text = unicodedata.normalize("NFKC", written).casefold()
    of_parts = (label for part, label in _LABEL_PARTS.items() if part in text)
    of_words = (label for word, label in _LABEL_OF_WORD.items() if len(word) > MIN_RUN and word in name)
    return next(chain(of_parts, of_words), "")


_EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[A-Za-z]{2,}")
_PHONE = re.compile(r"\+?[0-9][0-9 ()./-]{6,18}")
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_DIGITS = re.compile(r"[0-9]{13,19}")


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_iban(text: str) -> bool:
    compact = text.replace(" ", "").upper()
    if not _IBAN.fullmatch(compact):
        return False
    return int("".join(str(int(each, 36)) for each in compact[4:] + compact[:4])) % 97 == 1


def _is_card(text: str) -> bool:
    """Return whether the text is a card number: 13 to 19 digits with a correct check digit (Luhn)."""
    compact = text.replace(" ", "").replace("-", "")
    if not _DIGITS.fullmatch(compact):
        return False
    doubled = [int(each) * (2 if at % 2 else 1) for at, each in enumerate(reversed(compact))]
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


def _is_phone(text: str) -> bool:
    is_dotted = re.fullmatch(r"[0-9]{1,4}([.-][0-9]{1,2}){2}", text) is not None
    return _PHONE.fullmatch(text) is not None and not is_dotted and (text[0] in "+0" or not text.isdigit())


_SHAPES: Mapping[str, Callable[[str], bool]] = {
    "EMAIL": lambda text: _EMAIL.fullmatch(text) is not None,
    "IP": _is_ip,
    "BANK": _is_iban,
    "CARD": _is_card,
    "PHONE": _is_phone,
}


def _shape(values: Sequence[str]) -> tuple[str, float]:
    """Return the label of the shape that most of the values have, and their share. Text with addresses inside it is
    free text."""
    given = [each.strip() for each in values if each.strip()]
    if not given:
        return "", 0.0
    for label, fits in _SHAPES.items():
        share = sum(map(fits, given)) / len(given)
        if share >= MIN_SHARE:
            return label, share
    contained = sum(_EMAIL.search(each) is not None for each in given) / len(given)
    return (FREE_TEXT, contained) if contained >= MIN_SHARE_OF_ADDRESSES else ("", 0.0)
