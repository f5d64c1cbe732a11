"""Why a question that was not understood could not have been: what it is about is not in the catalog, or no English."""

from collections.abc import Sequence

_PRICES = (
    "price prices priced pricing cost costs much cheap cheaper cheapest expensive euro euros eur dollar dollars usd "
    "pound pounds gbp cents discount discounts"
)
_WITHDRAWN = "yanked yank withdrawn recalled retracted revoked"
_NOT_ENGLISH = (
    "welche welcher welches gibt es wie viele sind ist der das und für nicht mit kostet kosten wann wer ein eine "
    "quel quels quelle quelles combien est sont les des pour avec y cuáles cuántos qué hay los las para con "
    "quali quanti quante sono che"
)
_ENOUGH = 2


def beyond(left: Sequence[str]) -> list[str]:
    """What the words that were not read are about; empty where they tell nothing."""
    words = {word.lower() for word in left}
    told: list[str] = []
    if words.intersection(_PRICES.split()):
        told.append("prices are not in the catalog, only whether a product is free")
    if words.intersection(_WITHDRAWN.split()):
        told.append("withdrawn releases are never looked at")
    if len(words.intersection(_NOT_ENGLISH.split())) >= _ENOUGH:
        told.append("I read questions in English alone")
    return told
