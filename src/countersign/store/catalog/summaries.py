"""The summary of a product: one sentence of plain text, from its description in Markdown."""

import html
import re

MAX_SUMMARY = 140

_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^ {0,3}#{1,6}(\s.*)?$|^ {0,3}\S.*\n {0,3}(=+|-{2,})[ \t]*$", re.MULTILINE)
_RULE_OR_TABLE = re.compile(r"^ {0,3}([=-]{3,}\s*|\*[ \t]*\*[ \t]*\*[ \t*]*|\|.*)$", re.MULTILINE)
_LINE_START = re.compile(r"^\s*(>\s*)*([-*+]\s+|\d{1,9}[.)]\s+)?(\[[ xX]\]\s+)?", re.MULTILINE)
_IMAGE = re.compile(r"!\[([^\[\]]*)\]\([^()]*\)")
_LINK = re.compile(r"\[([^\[\]]+)\](\([^()]*\)|\[[^\[\]]*\])")
_AUTOLINK = re.compile(r"<((?:https?|mailto):[^>\s]+)>")
_TAG = re.compile(r"</?[a-zA-Z][^>]*>|<!--.*?-->", re.DOTALL)
_EMPHASIS = re.compile(r"(?<!\\)(\*{1,3}|_{1,3}|~~)(?=\S)(.{1,200}?)(?<=\S)\1(?!\w)")
_CODE = re.compile(r"(?<!`)`{1,9}([^`]+)`{1,9}")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SENTENCE = re.compile(r"^.+?([.!?…][\"'”’)\]]*(?=\s+[^\sa-z]|$)|[。！？])")
# The maximum number of characters that are read of a description and of its first paragraph. They are limited because
# some regular expressions take quadratic time.
_MAX_READ, _MAX_PARAGRAPH = 4_000, 600


def plain_text(markdown: str) -> str:
    """The first paragraph of a Markdown text that is not a heading, code or a table, without its markup."""
    text = _FENCE.sub("", markdown[:_MAX_READ].replace("\r\n", "\n"))
    text = _RULE_OR_TABLE.sub("", _HEADING.sub("", text))
    paragraph = next(
        (text_part for text_part in re.split(r"\n\s*\n", text) if _IMAGE.sub("", text_part[:_MAX_PARAGRAPH]).strip()),
        "",
    )
    text = _LINE_START.sub("", paragraph[:_MAX_PARAGRAPH])
    text = _AUTOLINK.sub(r"\1", _LINK.sub(r"\1", _IMAGE.sub("", text)))
    text = _CODE.sub(r"\1", html.unescape(_TAG.sub("", text)))
    for _ in range(3):
        text = _EMPHASIS.sub(r"\2", text)
    return " ".join(_ESCAPE.sub(r"\1", text).split())


def first_sentence(markdown: str | None) -> str | None:
    """The first sentence of a Markdown text as plain text of at most 140 characters; None if it has no text."""
    text = plain_text(markdown or "")
    sentence_match = _SENTENCE.match(text)
    sentence = sentence_match.group() if sentence_match else text
    if len(sentence) <= MAX_SUMMARY:
        return sentence or None
    shortened_sentence = sentence[: MAX_SUMMARY - 1]
    whole_words = (
        shortened_sentence.rpartition(" ")[0]
        if " " in shortened_sentence and not sentence[MAX_SUMMARY - 1].isspace()
        else shortened_sentence
    )
    return whole_words.rstrip(" ,;:–-") + "…"
