"""Split a question into words and look up their meanings; words.txt has one line per meaning."""

import re
from collections.abc import Sequence
from configparser import RawConfigParser
from importlib import resources
from typing import NamedTuple

from countersign.kernel.normalization import folded
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
    is_mark: bool = False


def tokens_of(question: str) -> list[WordToken]:
    """Return the tokens of a question, at most 400. A hyphenated compound is split into its words."""
    found: list[WordToken] = []
    text = _QUOTED_SENTENCE.sub(r" \1 ", _COMMENT.sub("", question.translate(_FOLDED).replace(" -> ", " to ")))
    text = _LIST.sub(lambda match: match[0].replace(",", "|"), text)
    for match in _TOKEN.finditer(text):
        if len(found) >= MAX_TOKENS:
            break
        start, end = match.span()
        if match["quoted"]:
            found += _quoted_tokens(match[0], start, end, text[end : end + 1])
        elif match["word"]:
            word = _WITHOUT_APOSTROPHE.get(folded(match[0]), folded(match[0]))
            ending = 2 * (word.endswith("'s") and word not in _WHOLE)
            found.append(WordToken(word[: len(word) - ending], start, end - ending))
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
    return [WordToken(folded(text[1:-1]), start + 1, end - 1)]


class Meaning(NamedTuple):
    """The meaning of a word or phrase: a slot or a class of words, and a value."""

    slot: str
    value: str


Phrase = tuple[str, ...]


def _phrases(words: str) -> list[Phrase]:
    return [tuple(token.word for token in tokens_of(phrase.strip(' "'))) for phrase in words.split(", ")]


def _by_phrase(section: str) -> dict[Phrase, str]:
    """Return the meaning of each phrase of a section of words.txt: the first one, where a phrase has several."""
    meanings = [*_SECTIONS.items(section)][::-1]
    return {phrase: meaning for meaning, words in meanings for phrase in _phrases(words)}


_SECTIONS = RawConfigParser(delimiters=[" : "], comment_prefixes=["#"])
_SECTIONS.optionxform = lambda optionstr: optionstr  # Keep capitals.
_SECTIONS.read_string((resources.files("countersign.store.ask") / "words.txt").read_text("utf-8"))
KEYS = _by_phrase("keys")
"""The words that replace the keys of key=value pairs; "value" if the value needs no such word."""
LISTS = {name: frozenset(" ".join(phrase) for phrase in _phrases(words)) for name, words in _SECTIONS.items("lists")}
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
    at = 0
    while at < len(tokens):
        key, end = _key(tokens, at)
        sign, token = tokens[end].word, tokens[at]
        word = "not" if sign == "!=" else sign if sign not in ("=", ":") else key
        remaining += [] if key == word == "value" else [token._replace(word=word, is_mark=True)] if key else [token]
        at = end + 1
    return _without_ends(remaining) if "=" in [token.word for token in tokens] else remaining


def _without_ends(tokens: Sequence[WordToken]) -> list[WordToken]:
    """Return the tokens of a text with pairs without the marks that end a sentence: "exists? kind=game" is a question,
    unlike "kind=game? yes/no"."""
    asked = 2 * ([token.word for token in tokens[:2]] == ["exists", "?"])
    return [*tokens[:asked], *(token for token in tokens[asked:] if token.word not in (":", ".", "?"))]


def _key(tokens: Sequence[WordToken], at: int) -> tuple[str, int]:
    """Return the key that begins at this token, and the position of the operator after it; an empty key, and the
    position of the token, if no key begins here. A colon is an operator if a value follows without a blank, or if the
    key begins a clause: in "the latest release of each channel: …", it is not."""
    for end in range(min(at + 3, len(tokens) - 1), at, -1):
        key = KEYS.get(tuple(token.word for token in tokens[at:end]))
        is_beside_value = end + 1 < len(tokens) and tokens[end].end == tokens[end + 1].start
        is_key = tokens[end].word != ":" or is_beside_value or at == 0 or tokens[at - 1].is_mark
        if key and is_key and tokens[end].word in _OPERATORS:
            return key, end
    return "", at


def respelled(word: str) -> str:
    """Return the known word that a mistyped word probably means, or an empty text. The words differ by one inserted,
    deleted or transposed letter. Long words may also differ by one replaced letter. A short word with one replaced
    letter is mostly a different word."""
    forms = sorted(deletion_variants(word)) if len(word) <= MAX_RESPELLED else []
    for meant in (each for form in forms for each in _SHORTENED.get(form, ()) if each[0] == word[0]):
        is_of_letters = any((len(meant) != len(word), sorted(meant) == sorted(word), len(word) > 6))
        if is_of_letters and distance(word, meant, 1) is not None:
            return "" if WORDS.get((meant,), Meaning("", "")).slot == "beyond" else meant
    return ""
