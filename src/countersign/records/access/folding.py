"""Case folding: which user names are one, and the stored form of text in which `contains` compares."""

import unicodedata


def folded(text: str) -> str:
    """The text without case: full case folding, in NFC before and after (Unicode 3.13, D145)."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
