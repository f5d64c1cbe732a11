"""The guess which columns are secret or personal. It denies by default: text that the guess cannot clear is masked
until a person says otherwise."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import chain, pairwise
from typing import Literal, TypeAlias

from countersign.connect import names, run_together
from countersign.connect.schema import Relation, TableColumn

Verdict: TypeAlias = Literal["clear", "personal", "look", "secret"]

FREE_TEXT = "TEXT"
"""The label of text that no one has looked at."""

MIN_SHARE = 0.5
MIN_SHARE_OF_ADDRESSES = 0.02
MIN_RUN = 5
"""The shortest word that is searched inside a run-together name such as `nationalidnumber`."""

SECRET_WORDS = frozenset(
    {
        *("password", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "salt", "otp", "totp", "mfa"),
        *("apikey", "privatekey", "credential", "credentials", "kennwort", "passwort", "passwortes", "geheimnis"),
        *("contrasena", "losenord", "wachtwoord", "senha", "cvv", "cvc", "pin", "token", "tokens", "jwt", "cookie"),
        *("fingerprint", "signature", "keyhash", "hash", "digest", "crypt", "crypted", "encrypted", "ciphertext"),
        *("pass", "userpass", "pw", "psw", "pswd", "passwrd", "dsn", "mnemonic", "nonce", "pincode", "cvn"),
        *("csc", "seedphrase", "motdepasse", "mdp", "clave", "haslo", "sifre", "parola", "pepper", "htpasswd"),
    }
)
_SECRET_PAIRS = frozenset((
    *(("api", "key"), ("private", "key"), ("access", "key"), ("secret", "key"), ("auth", "key"), ("session", "key")),
    *(("encryption", "key"), ("security", "answer"), ("recovery", "code"), ("backup", "code"), ("reset", "code")),
    *(("session", "id"), ("session", "data"), ("verification", "code"), ("license", "key"), ("consumer", "key")),
    *(("session", "uuid"), ("session", "guid"), ("session", "key"), ("invite", "code"), ("invitation", "code")),
    *(("pass", "phrase"), ("pass", "word"), ("pass", "code"), ("seed", "phrase"), ("connection", "string")),
    *(("database", "url"), ("db", "url"), ("security", "code"), ("access", "code"), ("login", "code")),
    *(("one", "time"), ("magic", "link"), ("reset", "link"), ("master", "key"), ("shared", "key"), ("pre", "shared")),
))
_SECRET_PARTS = ("パスワード", "暗証", "秘密", "密码", "пароль")

# Maps a label to words of a name. A word of one language is enough: names mix languages.
LABEL_WORDS: Mapping[str, frozenset[str]] = {
    "EMAIL": frozenset({"email", "mail", "emailaddress", "epost", "courriel", "correo"}),
    "PHONE": frozenset(
        {
            *("phone", "telephone", "mobile", "cell", "cellphone", "fax", "tel", "telefon", "handy", "phonenumber"),
            *("msisdn", "whatsapp", "rufnummer", "mobil"),
        }
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
            *("postleitzahl", "postnummer", "apartment", "geohash", "coordinate", "coordinates"),
        }
    ),
    "TAXID": frozenset({"taxid", "vat", "vatid", "taxnumber", "steuernummer", "steuerid", "ustid", "tin", "ein"}),
    "IDNUMBER": frozenset(
        {
            *("ssn", "passport", "nationalid", "nationalidnumber", "personnummer", "identitycard", "driverlicense"),
            *("socialsecurity", "sozialversicherungsnummer", "ausweis", "ausweisnummer", "licenseplate", "kennzeichen"),
            *("svnr", "ahv", "nino", "cpf", "dni", "nif", "nie", "pesel", "bsn", "aadhaar", "curp", "imei", "imsi"),
        }
    ),
    "BANK": frozenset({"iban", "bic", "swift", "bankaccount", "accountnumber", "routingnumber", "kontonummer", "blz"}),
    "CARD": frozenset({"creditcard", "cardnumber", "pan", "kartennummer", "creditcardnumber"}),
    "IP": frozenset({"ip", "ipaddress", "ipaddr", "remoteaddr", "mac", "macaddress", "macaddr"}),
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
        *("bonus", "bonuses", "commission", "compensation", "remuneration", "stipend", "pension", "severance", "pay"),
        *("payroll", "wages", "hourlyrate", "netpay", "grosspay", "verguetung", "praemie", "monatsgehalt", "rente"),
        *("hire", "hired", "hiredate", "yob", "birthyear", "geburtsjahr", "deceased", "died", "sterbedatum", "gpa"),
        *("iq", "race", "caste", "citizenship", "allergy", "allergies", "blood", "disease", "illness", "sick"),
        *("krank", "krankheit", "fehltage", "pregnancy", "smoker", "dependents", "geo"),
        *("creditscore", "networth", "debt", "nacimiento", "naissance", "salaire", "salario", "sueldo"),
    }
)
_PERSONAL_VALUE_PAIRS = frozenset({("credit", "score"), ("hourly", "rate"), ("net", "worth"), ("pay", "rate")})
_PERSONAL_VALUE_PARTS = ("生年月日", "誕生日", "年齢", "給与", "性別")
_HARMLESS_IN_PEOPLE = frozenset({"active", "activebool", "enabled", "deleted", "archived"})

# Endings of the names of codes and counts, which are not what the words before them name.
_HARMLESS_ENDINGS = ("type", "count", "at")


_FILLING_WORDS = frozenset(
    {
        *("a", "of", "the", "is", "has", "my", "no", "nr", "num", "number", "nummer", "id", "code", "key"),
        *("date", "datum", "day", "year", "month", "time", "value", "text", "old", "new", "last", "first"),
        *("name", "home", "work", "private", "annual", "monthly", "yearly", "hourly", "gross", "net", "base"),
        *("total", "current", "manager", "admin", "owner", "billing", "shipping", "delivery", "invoice"),
        *("emergency", "account", "card", "bank", "db", "database", "api", "app", "web", "site", "mail"),
        *("session", "device", "login", "auth", "master", "root", "test", "temp", "stored", "monats", "jahres"),
        *("stunden", "brutto", "netto", "kunden", "personal", "privat", "firmen", "geburts", "wohn", "steuer"),
        *("rechnungs", "liefer", "kind", "partner", "spouse", "mother", "father", "child", "parent", "doctor"),
        *("passage", "passages"),
    }
)
_VOCABULARY = frozenset[str]().union(
    SECRET_WORDS, _LABEL_OF_WORD, _PERSONAL_VALUES, _PEOPLE, _FILLING_WORDS, *_LABEL_PAIRS, *_SECRET_PAIRS
)
"""The words into which run-together names are divided."""


@dataclass(frozen=True, slots=True)
class Guess:
    """The verdict on a column, the label of its tokens if it is masked, and the reason in words."""

    verdict: Verdict
    reason: str = ""
    label: str = ""


def guess(column: TableColumn, values: Sequence[str] = (), *, of_people: bool = False) -> Guess:
    """Return the verdict on a column, given different values of it. `of_people` says that each row of the table is
    about one person.

    Text and uuids are masked, whatever their name and the values say: others may follow that differ. Numbers, dates and
    enums are clear, except where their name or their table says that they are secret or personal.
    """
    said = re.search(r"\bpii:([a-z]+)", column.comment.lower())
    if said:
        return Guess("personal", "the comment of the column says so", said[1].upper()[:20])
    if _is_secret(column):
        return Guess("secret", "secret")
    if column.base in ("text", "citext", "uuid", "address", "other", "json", "array", "interval"):
        return _text(column, values, of_people)
    return _value(column, of_people)


def is_about_people(relation: Relation) -> bool:
    """Return whether the name of the relation says that each row is about one person."""
    parts = names.words(relation.name)
    found = {names.singular(part) for part in parts} | set(parts)
    is_run = _contains("".join(parts), _PEOPLE_RUNS)
    return is_run or bool(found & _PEOPLE) or _contains(relation.name, _PEOPLE_PARTS)


def _is_secret(column: TableColumn) -> bool:
    if column.base in ("bool", "date", "moment", "local_moment", "time"):
        return False
    parts = names.words(column.name)
    if not _SECRET_PAIRS.isdisjoint(pairwise(parts)) or _contains(column.name, _SECRET_PARTS):
        return True
    if len(parts) > 1 and parts[-1] in ("count", "type"):
        return False
    return _has_word(parts, SECRET_WORDS)


def _has_word(parts: Sequence[str], known: frozenset[str]) -> bool:
    """Return whether a name with these parts contains one of the words, also where the name is run together."""
    run = "".join(parts)
    is_inside = any(len(word) >= MIN_RUN and word in run for word in known)
    return is_inside or not known.isdisjoint(_all_words(parts))


def _all_words(parts: Iterable[str]) -> set[str]:
    """Return the parts of a name, their singulars, and the words of the parts that are run together."""
    found = {word for part in parts for word in (part, *run_together.words(part, _VOCABULARY))}
    return found | {names.singular(word) for word in found}


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
    return Guess("look", "text that no one has looked at", FREE_TEXT)


def _with_share(reason: str, shape: str, share: float) -> str:
    return f"{reason}, {share:.0%} of the values" if shape else reason


def _value(column: TableColumn, of_people: bool) -> Guess:
    """Return the verdict on a column that is not text. Tokens stand for text only, so it is clear or not declared."""
    parts = names.words(column.name)
    is_pair = not _PERSONAL_VALUE_PAIRS.isdisjoint(pairwise(parts))
    if is_pair or _has_word(parts, _PERSONAL_VALUES) or _contains(column.name, _PERSONAL_VALUE_PARTS):
        return Guess("look", "a personal value, and tokens stand for text only")
    is_harmless = column.base == "bytes" or (column.base == "bool" and not _HARMLESS_IN_PEOPLE.isdisjoint(parts))
    if of_people and not is_harmless:
        return Guess("look", "a value in a table about people")
    # A boolean value is no address and no number, whatever its name says.
    if column.base != "bool" and _label_of_name(column, of_people):
        return Guess("look", "a personal value, and tokens stand for text only")
    return Guess("clear")


def _label_of_name(column: TableColumn, of_people: bool) -> str:
    parts = names.words(column.name)
    if parts and parts[-1] in _HARMLESS_ENDINGS and len(parts) > 1:
        return ""
    if parts == ["name"] and of_people:
        return "PERSON"
    of_pairs = map(_LABEL_PAIRS.get, pairwise(parts))
    of_words = (_LABEL_OF_WORD.get(word) for part in parts for word in (part, names.singular(part)))
    of_runs = map(_LABEL_OF_WORD.get, sorted(_all_words(parts)))
    found = next(filter(None, chain(of_pairs, of_words)), "")
    return found or _label_in_run(column.name, "".join(parts)) or next(filter(None, of_runs), "")


def _label_in_run(written: str, name: str) -> str:
    """Return the label of a word in a name whose words are not divided: `kundenvorname`, or a Japanese name."""
    text = unicodedata.normalize("NFKC", written).casefold()
    of_parts = (label for part, label in _LABEL_PARTS.items() if part in text)
    of_words = (label for word, label in _LABEL_OF_WORD.items() if len(word) >= MIN_RUN and word in name)
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
