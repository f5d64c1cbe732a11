"""The words of letters about waiting plans, in each language there are words in."""

from typing import NamedTuple


class Words(NamedTuple):
    """One language's: `several` has the number in place of `{count}`."""

    one: str
    several: str
    look: str
    why: str


_ENGLISH = Words(
    one="1 plan waits for your approval",
    several="{count} plans wait for your approval",
    look="Look at what would be done, then approve or reject it:",
    why=(
        "You get this letter because you may decide about them. Whoever administers people switches it off: "
        "the field Letters of your user."
    ),
)
_GERMAN = Words(
    one="1 Plan wartet auf Ihre Freigabe",
    several="{count} Pläne warten auf Ihre Freigabe",
    look="Sehen Sie nach, was getan würde, und geben Sie es frei oder lehnen Sie es ab:",
    why=(
        "Sie bekommen diesen Brief, weil Sie darüber entscheiden dürfen. Wer die Personen verwaltet, schaltet ihn ab: "
        "das Feld Letters Ihrer Person."
    ),
)


def words_in(language: object) -> Words:
    """The words of the language; English where none was chosen."""
    return _GERMAN if language == "de" else _ENGLISH
