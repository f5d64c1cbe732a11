"""Split a question into words and look up their meanings; words.txt has one line per meaning."""

import re
import unicodedata
from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

from countersign.kernel.normalization import normalized
from countersign.store.catalog.search import deletion_variants, distance

MAX_PHRASE = 5
"""Maximum number of words of a phrase."""
MAX_TOKENS = 400
MAX_RESPELLED = 20
"""Maximum length of a word in which a typing error is corrected."""
_TOKEN = re.compile(
    r"""(?P<quoted>"[^"]{1,100}"|“[^”]{1,100}”|«[^»]{1,100}»|`[^`]{1,100}`|(?<!\w)'[^']{1,100}'(?!\w))
    |(?P<number>v?\d[0-9A-Za-z]*(?:[._+:/-][0-9A-Za-z]+)*)
    |(?P<joint>(?<=[^\W_])[-_](?=[^\W_]))
    |(?P<minus>(?<!\S)-(?=[^\W\d_]))
    |(?P<word>[^\W\d_][^\W_]*(?:['’.][^\W_]+)*)
    |(?P<mark>!=|<=|>=|&&|\|\||[,;:?!()\[\]{}&=<>|$€£\#/+.-])""",
    re.VERBOSE,
)
_OPERATORS = frozenset(["=", ":", "!=", ">", "<", ">=", "<="])
_KEY_WORD = re.compile(r"[^\W_]+")
_IDENTIFIER = re.compile(r"[a-z]+(?:_[a-z]+)+")
_QUOTED_SENTENCE = re.compile(r'["“]([^"“”]{1,400}[?!.][^"“”]{0,100})["”]')
"""A quoted sentence, which is not a name: its quotation marks are ignored."""
_LIST = re.compile(r"\[[^\]]{1,400}\]")
"""A list of alternatives, such as `[android, ios]`."""
_COMMENT = re.compile(r"\s(?:#|//) .*")
_FOLDED = str.maketrans({"’": "'", "‘": "'", "–": "-", "—": "-", "\u00a0": " "})
_WHOLE = frozenset(str.split("what's who's where's when's it's that's there's how's let's he's she's here's"))
_WITHOUT_APOSTROPHE = {word.replace("'", ""): word for word in _WHOLE - {"it's", "let's", "he's", "she's"}}


class WordToken(NamedTuple):
    """A word of the question: its form for comparison, and its position. Both exclude a possessive 's."""

    word: str
    start: int
    end: int
    is_quoted: bool = False
    is_mark: bool = False


def tokens_of(question: str) -> list[WordToken]:
    """Return the tokens of a question, at most 400. A hyphenated compound is split into its words."""
    found: list[WordToken] = []
    text = _QUOTED_SENTENCE.sub(r" \1 ", _COMMENT.sub("", question.translate(_FOLDED)))
    text = _LIST.sub(lambda match: match[0].replace(",", "|"), text)
    for match in _TOKEN.finditer(text):
        if len(found) >= MAX_TOKENS:
            break
        start, end = match.span()
        if match["quoted"]:
            found += _quoted_tokens(match[0], start, end, text[end : end + 1])
        elif match["word"]:
            found.append(_token(match[0], start, end))
        elif match["minus"]:
            found.append(WordToken("not", start, end, is_mark=True))
        elif not match["joint"]:
            found.append(WordToken(match[0].lower(), start, end, is_mark=match["mark"] is not None))
    return found[:MAX_TOKENS]


def _quoted_tokens(text: str, start: int, end: int, following: str) -> list[WordToken]:
    """Return a quoted text as one token; the words of a quoted key (`"published since": …`) or identifier
    (`"list_releases"`)."""
    if following == ":" or _IDENTIFIER.fullmatch(text[1:-1]):
        return [WordToken(folded(word), start + 1, end - (following != ":")) for word in _KEY_WORD.findall(text)]
    return [WordToken(folded(text[1:-1]), start + 1, end - 1, is_quoted=True)]


def _token(text: str, start: int, end: int) -> WordToken:
    word = _WITHOUT_APOSTROPHE.get(folded(text), folded(text))
    is_possessive = word.endswith("'s") and word not in _WHOLE
    return WordToken(word[:-2], start, end - 2) if is_possessive else WordToken(word, start, end)


def folded(text: str) -> str:
    """Return the text in the form in which words are compared: lower case, without accents."""
    return "".join(each for each in normalized("NFKD", text) if not unicodedata.combining(each)).lower()


class Meaning(NamedTuple):
    """The meaning of a word or phrase: a slot or a class of words, and a value."""

    slot: str
    value: str


Phrase = tuple[str, ...]


def _sections() -> dict[str, dict[str, list[Phrase]]]:
    """Return the phrases of each meaning, by section of words.txt."""
    sections: dict[str, dict[str, list[Phrase]]] = {}
    meanings: dict[str, list[Phrase]] = {}
    for line in (resources.files("countersign.store.ask") / "words.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            meanings = sections.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            meaning, words = line.split(" : ", 1)
            phrases = [tuple(token.word for token in tokens_of(each.strip(' "'))) for each in words.split(", ")]
            meanings.setdefault(meaning.strip(), []).extend(phrases)
    return sections


def _by_phrase(section: str) -> dict[Phrase, str]:
    """Return the meaning of each phrase of a section: the first one, where a phrase has several."""
    return {phrase: meaning for meaning, phrases in reversed(_SECTIONS[section].items()) for phrase in phrases}


_SECTIONS = _sections()
KEYS = _by_phrase("keys")
"""The words that replace the keys of key=value pairs; "value" if the value needs no such word."""
LISTS = {name: frozenset(word for phrase in phrases for word in phrase) for name, phrases in _SECTIONS["lists"].items()}
_NUMBERS = str.split("two three four five six seven eight nine ten eleven twelve thirteen")
COUNTS = {word: count for count, word in enumerate(_NUMBERS, 2)}
WORDS = {
    **{phrase: Meaning("beyond", named) for phrase, named in _by_phrase("beyond").items()},
    **{phrase: Meaning(*meaning.split()) for phrase, meaning in _by_phrase("meanings").items()},
    **{(word,): Meaning("number", str(count)) for word, count in COUNTS.items()},
}
_OF_IGNORED = {word: line for phrase, line in _by_phrase("ignored").items() for word in phrase}
IGNORED = frozenset(_OF_IGNORED)
"""Words without a meaning in a question."""
COURTESY = frozenset(word for word, line in _OF_IGNORED.items() if line == "courtesy and fillers") | {","}
"""The ignored words that can begin a question."""
DENIALS = frozenset(" ".join(phrase) for phrase, meaning in WORDS.items() if meaning.slot == "not")
KNOWN_WORDS = frozenset(word for phrase in WORDS for word in phrase) | IGNORED
_SHORTENED: dict[str, list[str]] = {}
for _known in sorted({phrase[0] for phrase in WORDS if len(phrase) == 1} | IGNORED):
    for _form in deletion_variants(_known):
        _SHORTENED.setdefault(_form, []).append(_known)


def without_keys(tokens: list[WordToken]) -> list[WordToken]:
    """Return the tokens with each key and operator of a key=value pair replaced by a word with that meaning: "since"
    for `published_after=`, "not" for `platform!=`, nothing for `platform=`. A text with such pairs is one sentence."""
    remaining: list[WordToken] = []
    end = 0
    for at, token in enumerate(tokens):
        key, operator = _key(tokens, at) if at >= end else ("", at)
        if key:
            end = operator + 1
            word = _word_of_pair(key, tokens[operator].word)
            remaining += [token._replace(word=word, is_mark=True)] if word else []
        elif at >= end:
            remaining.append(token)
    has_pairs = "=" in [token.word for token in tokens]
    return [token for token in remaining if not (has_pairs and token.word in (":", ".", "?"))]


def _word_of_pair(key: str, operator: str) -> str:
    if operator in ("=", ":"):
        return "" if key == "value" else key
    return "not" if operator == "!=" else operator


def _key(tokens: Sequence[WordToken], at: int) -> tuple[str, int]:
    """Return the key that begins at this token, and the position of the operator after it."""
    for size in (3, 2, 1):
        end = at + size
        key = KEYS.get(tuple(token.word for token in tokens[at:end]))
        if key and end < len(tokens) and _is_operator(tokens, at, end):
            return key, end
    return "", at


def _is_operator(tokens: Sequence[WordToken], at: int, end: int) -> bool:
    """Return whether the token is an operator after a key. A colon is one if a value follows without a blank, or if the
    key begins a clause: in "the latest release of each channel: …", it is not."""
    if tokens[end].word != ":":
        return tokens[end].word in _OPERATORS
    is_beside_value = end + 1 < len(tokens) and tokens[end].end == tokens[end + 1].start
    return is_beside_value or at == 0 or tokens[at - 1].is_mark


def respelled(word: str) -> str:
    """Return the known word that a mistyped word probably means, or an empty text. The words differ by one inserted,
    deleted or transposed letter. Long words may also differ by one replaced letter. A short word with one replaced
    letter is mostly a different word."""
    forms = sorted(deletion_variants(word)) if len(word) <= MAX_RESPELLED else []
    near = (each for form in forms for each in _SHORTENED.get(form, ()) if each[0] == word[0])
    meant = next((each for each in near if _is_typing_error(word, each)), "")
    return "" if WORDS.get((meant,), Meaning("", "")).slot == "beyond" else meant


def _is_typing_error(word: str, meant: str) -> bool:
    is_of_letters = len(meant) != len(word) or sorted(meant) == sorted(word) or len(word) > 6
    return is_of_letters and distance(word, meant, 1) is not None
