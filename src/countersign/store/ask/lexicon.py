"""Split a question into words and look up their meanings; words.txt has one line per meaning."""

import re
from collections.abc import Sequence
from configparser import RawConfigParser
from difflib import get_close_matches
from importlib import resources
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from countersign.kernel.normalization import folded

MAX_PHRASE = 5
"""Maximum number of words of a phrase."""
MAX_TOKENS = 400
MAX_RESPELLED = 20
"""Maximum length of a word in which a typing error is corrected."""
MIN_LIKENESS = 0.8
"""Minimum similarity of a mistyped word."""
_TOKEN = re.compile(
    r"""(?P<quoted>"[^"]{1,100}"|“[^”]{1,100}”|«[^»]{1,100}»|`[^`]{1,100}`|(?<!\w)'[^']{1,100}'(?!\w))
    |(?P<number>v?\d[0-9A-Za-z]*(?:[._+:/-][0-9A-Za-z]+)*)
    |(?P<joint>(?<=[^\W_])[-_](?=[^\W_]))
    |(?P<minus>(?<!\S)-(?=[^\W\d_]{2}))
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
_REVERSING = frozenset(["not", "only", "or", "reversing"])
DENIALS = frozenset(" ".join(phrase) for phrase, meaning in WORDS.items() if not _REVERSING.isdisjoint(meaning))
"""The phrases that turn a meaning round, or that state a choice."""
KNOWN_WORDS = frozenset(word for phrase in WORDS for word in phrase) | IGNORED
_SINGLE = sorted({phrase[0] for phrase in WORDS if len(phrase) == 1} | IGNORED)
_BY_LETTER = {letter: [*words] for letter, words in groupby(_SINGLE, itemgetter(0))}


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
    """Return the known word that consists of the same letters as a mistyped word ("gmaes", "evry"), or that differs in
    its ending ("exists"); an empty text for other words. "Rain" is not "ran"."""
    known = [each for each in _BY_LETTER.get(word[:1], ()) if abs(len(each) - len(word)) < 2]
    alike = get_close_matches(word, known, 3, MIN_LIKENESS)
    meant = next((each for each in alike if _has_letters(each, word) or word in (f"{each}s", each[:-1])), "")
    return "" if WORDS.get((meant,), Meaning("", "")).slot == "beyond" else meant


def _has_letters(word: str, mistyped: str) -> bool:
    return sorted(word) == sorted(mistyped) or ({*word}, word[-1]) == ({*mistyped}, mistyped[-1])
