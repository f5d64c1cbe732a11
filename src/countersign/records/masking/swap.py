"""Replacing tokens in a text: one pass from left to right, and what was put in is never looked at again."""

from collections.abc import Mapping

from countersign.records.masking.grammar import Grammar


def replaced(grammar: Grammar, text: str, meanings: Mapping[str, str]) -> str:
    """The text with what each token stands for in its place; a token without a meaning stays."""
    pieces: list[str] = []
    place = 0
    for token in grammar.tokens(text):
        if token.text in meanings:
            pieces += (text[place : token.start], meanings[token.text])
            place = token.end
    return "".join((*pieces, text[place:]))
