"""From a question to its words: contractions undone, versions and dates in one piece, quoted text marked."""

import re
import unicodedata
from typing import NamedTuple

from countersign.kernel.normalization import normalized

MAX_WORDS = 60
MAX_WORD_LENGTH = 200
_FILLERS = """
    please kindly actually currently presently just ever yet already still also exactly really simply hey hi hello
    thanks thank ok okay well , ; now
"""
FILLERS = frozenset(_FILLERS.split())
"""What may stand anywhere and means nothing."""

_TOKEN = re.compile(
    r"""(?P<quoted>"[^"]{1,200}"|“[^”]{1,200}”|„[^“”]{1,200}[“”]|«[^»]{1,200}»|`[^`]{1,200}`)
    |(?P<number>v?\d[0-9A-Za-z._+!:-]*)
    |(?P<word>[^\W_]+(?:['’][^\W_]+)*['’]?)
    |(?P<mark>(?<=\s)-(?=[^\W\d_])|[&,;()$€£¥%<>=*+#@~^|\\/])""",
    re.VERBOSE | re.IGNORECASE,
)
_STRAIGHT = re.compile(r"(?<![\w])'([^']{1,200})'(?![\w])")
_NOT = {
    "dont": "do",
    "doesnt": "does",
    "didnt": "did",
    "isnt": "is",
    "arent": "are",
    "wasnt": "was",
    "werent": "were",
    "hasnt": "has",
    "havent": "have",
    "hadnt": "had",
    "cant": "can",
    "couldnt": "could",
    "wont": "will",
    "wouldnt": "would",
    "mustnt": "must",
    "shouldnt": "should",
    "neednt": "need",
}
_IS = frozenset(["what", "who", "when", "where", "which", "how", "that", "it", "there", "here"])
_AFTER_IT = {"ve": "have", "ll": "will", "d": "would", "re": "are"}
_IT = frozenset(["i", "you", "we", "they", "he", "she", "it", "that", "this", "there", "who", "what", "which", "these"])
_TWO = {
    "cannot": ("can", "not"),
    "whats": ("what", "is"),
    "whos": ("who", "is"),
    "id": ("i", "would"),
    "&": ("and",),
    "-": ("not",),
}
_MEANT = {"im": ("i", "am"), "ive": ("i", "have"), "lets": ("let", "us"), "theres": ("there", "is")}


class Token(NamedTuple):
    """One word of the question: as it is compared, and where it stands in the text. A quoted text is one token."""

    word: str
    start: int
    end: int
    is_quoted: bool = False


class TooLong(Exception):
    """The question has more words, or a longer one, than are read."""


def plain(text: str) -> str:
    """The text in lower case, without accents and with straight apostrophes."""
    decomposed = normalized("NFKD", text)
    bare = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return bare.casefold().replace("’", "'")


def tokens(question: str) -> list[Token]:
    """The question's words.

    Raises:
        TooLong: there are more than 60, or one has more than 200 characters.
    """
    text = _STRAIGHT.sub(lambda found: f'"{found[1]}"', question)
    found: list[Token] = []
    for each in _TOKEN.finditer(text):
        start, end = each.span()
        if each["quoted"]:
            found.append(Token(each[0][1:-1].strip(), start, end, is_quoted=True))
        elif each["number"]:
            bare = each[0].rstrip(".,:!-")
            found.append(Token(bare.casefold(), start, start + len(bare)))
        else:
            found += _of_word(each[0], start, end)
    if len(found) > MAX_WORDS:
        raise TooLong(f"more than {MAX_WORDS} words")
    if any(token.end - token.start > MAX_WORD_LENGTH + 2 for token in found):
        raise TooLong(f"a word of more than {MAX_WORD_LENGTH} characters")
    return found


def _of_word(text: str, start: int, end: int) -> list[Token]:
    words = _words(plain(text))
    if words[-1] == "'s":
        stop = start + max(text.rfind("'"), text.rfind("’"))
        return [Token(words[0], start, stop), Token("'s", stop, end)]
    return [Token(word, start, end) for word in words]


def _words(word: str) -> tuple[str, ...]:
    bare = word.replace("'", "")
    is_short = "'" in word
    if bare in _NOT:
        return (_NOT[bare], "not")
    if bare in _TWO and (bare != "id" or is_short):
        return _TWO[bare]
    if bare in _MEANT and is_short:
        return _MEANT[bare]
    return _possessive(word) if is_short else (bare,)


def _possessive(word: str) -> tuple[str, ...]:
    stem, _, ending = word.partition("'")
    if stem in _IT and ending in _AFTER_IT:
        return (stem, _AFTER_IT[ending])
    if ending not in ("", "s"):
        return (word.replace("'", ""),)
    return (stem, "is") if stem in _IS else (stem, "'s")


def span(question: str, found: list[Token], start: int, end: int) -> str:
    """The text of the tokens from `start` up to `end`, as it was typed; a quoted one without its marks."""
    if end - start == 1 and found[start].is_quoted:
        return found[start].word
    return question[found[start].start : found[end - 1].end]
