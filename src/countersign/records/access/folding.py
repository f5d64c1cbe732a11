"""Case folding: which user names are one, and the stored form of text in which `contains` compares."""

from countersign.kernel.normalization import normalized


def folded(text: str) -> str:
    """The text without case: full case folding, in NFC before and after (Unicode 3.13, D145)."""
    if text.isascii():
        return text.lower()
    return normalized("NFC", normalized("NFC", text).casefold())
