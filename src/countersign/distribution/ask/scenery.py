"""What a remark about the asker may say without asking for anything: "I have a Mac", "my sister wonders"."""

import re

_WORDS = frozenset(
    word
    for line in (
        "i i'm i've i'd im ive me my mine we we're we've us our ours you your he she it's his her they them",
        "people everyone everybody someone somebody friend friends colleague colleagues mate customer customers",
        "daughter son sister brother kid kids child children mother father mum dad wife husband partner boss teacher",
        "team family a an the this that these those it its one some something anything thing things all both each",
        "other and or but so because since as to of on at",
        "with in for from about between by here there home office lab desk",
        "now currently am is are was were be been being do does did have has had having got get given gave bought",
        "use uses used using own owns run runs running work",
        "works working play plays playing sit want wants wanted need",
        "needs like likes love loves would could can will",
        "might should looking look search searching find wonder wonders",
        "wondering know see ask asks asking told hear heard keep read reading mentioned try trying decide choose",
        "little pick remember recall forgot think thinking consider considering install installed switch switched "
        "skipped missed moved",
        "moving move plan compare phone phones laptop",
        "laptops computer computers machine machines desktop tablet tablets",
        "device devices which what how whether if when who named",
        "called name just also too really very still only please",
        "can't says half mixed must thank built made make",
    )
    for word in line.split(" ")
)
_LEAVING = re.compile(r"\b(?:mov|switch|chang|com|go)\w*\b.*\b(?:from|off|away)\b")
"""What is left behind is named as what is asked about is: "I moved from Windows to Linux"."""
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def is_scenery(remark: str) -> bool:
    """Whether no word of the remark asks for anything. With any other word, what it adds to a question is not known:
    "I love shooters" is not left out."""
    if _LEAVING.search(remark.lower()):
        return False
    return all(word.replace("’", "'") in _WORDS for word in _WORD.findall(remark.lower()))
