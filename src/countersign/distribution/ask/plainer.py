"""Other words for the same: chat abbreviations, asides and word orders put into words that the grammar reads."""

import re
from collections.abc import Sequence
from functools import partial

from countersign.distribution.ask.dates import MONTHS
from countersign.distribution.ask.wordlists import PLATFORMS

_KINDS = r"(?:games?|apps?|applications?|tools?|utilit(?:y|ies)|products?|titles?|programs?|things?|ones)"
_CHANNEL = r"(?:stable|beta|alpha|nightly)"
_ON = "|".join(sorted((re.escape(each) for each in PLATFORMS), key=len, reverse=True))
_MONTH = "|".join(MONTHS)
_PERSON = "(?:i|we|you|one)"
_END = r"(?=\s*[?.!]*\s*$)"
_END_OF_PART = r"(?=\s*(?:[?.!,;]|$))"
_WEAK = "is|are|was|were|do|does|did|has|have|had|can|could|will|would"

_BROKE = (
    r"(?:(?:i|we)(?:['’]m| am|['’]re| are)? ?(?:so |completely |a bit )?(?:broke|penniless|out of money)|"
    r"(?:i|we) (?:have no|haven['’]?t (?:any|got any|got)|don['’]?t have(?: any)?|do not have(?: any)?|got no) money|"
    r"(?:i|we) (?:can['’]?t|cannot|can not) (?:pay|afford (?:to pay|anything|much))|no money)"
)
_LICENCES = "mit|a?gpl|lgpl|apache|bsd|mpl|proprietary|(?:open|closed)[- ]source"
_WHO = r"(?:mum|mom|dad|mother|father|sister|brother|boss|teacher|wife|husband|colleague|friend|customer)"

_RULES: tuple[tuple[str, str], ...] = (
    # As people write in a hurry
    (r"\bw/o\b", "without"),
    (r"\bw/\s?", "with "),
    (r"\bu\b", "you"),
    (r"\bur\b", "your"),
    (r"\b(?:pls|plz|plse|pleas)\b", "please"),
    (r"\bgimme\b", "give me"),
    (r"\blemme\b", "let me"),
    (r"\bwanna\b", "want to"),
    (r"\bgotta\b", "have to"),
    (r"\b(?:wich|whcih|wihch|whitch)\b", "which"),
    (r"\b(?:hwo|whoo)\b", "who"),
    (r"\b(?:quick|short|brief) (?=summary|description|overview|info|look|word)", ""),
    (r"\b(?:the )?(?:lowdown|scoop|gist|skinny) (?:on|about|of)\b", "information about"),
    (r"\b(?:wat|wot|waht)\b", "what"),
    # More words than are needed
    (r"\bsuch (?:a )?things? as (?:an? )?", "a "),
    (rf"\b(?:would|will|should|might) {_PERSON} be able to\b", "can i"),
    (rf"\b(?:am|are|is) {_PERSON} able to\b", "can i"),
    (
        r"\b(?:i (?:need|want|would like|['’]d like)|give me|tell me|show me|list) (?:all )?(?:the |a list of "
        r"(?:the )?)?"
        r"names of (?:all (?:of )?)?(?:the )?",
        "list the ",
    ),
    (r"\b(moved|switched|gone|going|moving|switching) over (?=to\b)", r"\1 "),
    (r"\b(work|works|run|runs|play|plays) (?:fine |well )?for (?:me|us|him|her|them)\b", r"\1"),
    (r"\bnever (?:heard|read) (?:of|about)\b", "i heard of"),
    (r"\bi (?:keep|kept|have been|['’]ve been) (?:reading|hearing|seeing) (?:about|of)\b", "i heard of"),
    (r"\bthe (?:day|date|moment) (?:on|at) which (.+?) (was|were|has been) (?=last|first|released|published|put|made)",
     r"when \2 \1 "),
    (r"[\s,;-]*(?<=[\s,;-])(?:either|any)(?: one| of them| of these)? (?:will do|would do|is fine|is ok|is okay|works|"
     rf"goes|is good){_END}", ""),
    (rf"\b(in|during) ({_MONTH}) or (?:in |during )?({_MONTH}),? (?:of )?(\d{{4}})\b", r"in \2 \4 or in \3 \4"),
    # Whose it is
    (
        rf"\b(?:my|our|his|her|their) (?:phone|smartphone|laptop|computer|machine|tablet|desktop|pc|device|box|"
        rf"notebook)"
        rf"(?:['’]s| is| runs| uses| has)(?: (?:on|under))?(?: an?)? (?=(?:{_ON})\b)",
        "i have ",
    ),
    (
        r"^(?:the|my|our) (?:copy|version|install|installation|installed version) of (.+?) "
        r"(?:says|is|shows|reads|claims to be|reports|calls itself) (?:version |v)?(\d[\w.+-]*)",
        r"i have \1 \2",
    ),
    # Said to be confirmed
    (
        rf"^(?!who|what|which|how|when|where)(.{{2,80}}?) ({_WEAK})(?:n['’]?t| not) (.+?), (?:{_WEAK}) (?:it|they|"
        rf"there)"
        rf"{_END}",
        r"\2 \1 \3",
    ),
    (rf"^there(?:['’]s| is| are|['’]re) no (.+?), (is|are) there{_END}", r"\2 there a \1"),
    (
        r"^(?:besides|apart from|other than|except for|aside from|next to) (.{2,60}?), what (has|have|does|did) (?:its|"
        r"the|their|that) (makers?|publishers?|developers?|studio|team|company|authors?|creators?)",
        r"what else \2 the maker of \1",
    ),
    (
        r"\bif (?:all|the only thing|everything) (?:that )?(?:i|we)(?:['’]ve| have)?(?: got| have| own)? is "
        r"(?:an? |the |my )?"
        rf"({_ON})\b",
        r"on \1",
    ),
    (rf"\b(?:the )?({_CHANNEL}|newest|latest) one (?=of\b)", r"\1 "),
    (r"\bteh\b", "the"),
    (r"\bvs\.", "vs"),
    (r"\br (?=there\b|you\b|they\b)", "are "),
    (rf"(?<=\s)-(?=(?:{_ON})\b)", "not on "),
    (r"(?<=\s)-(?=[a-z])", "not "),
    (r"(?<=[a-z])\s?\+\s?(?=[a-z])", " and "),
    (rf"\b({_ON})[: ]+yes\b,?", r"on \1"),
    (rf"\b({_ON})[: ]+no\b", r"and not on \1"),
    # Denied to be confirmed
    (rf"^(\W*+(?:(?:so|and|but|well|hey|hi|hello)\b\W*+)*+)({_WEAK})n['’]?t\b", r"\1\2"),
    # Asides
    (
        rf"^(?:(?:my |our |the )?{_WHO} (?:says|said|asks|asked|wants to know|is asking|wonders|would like to know)"
        r"(?: me)?(?: that)?[:,]?|(?!no|none)[a-z]+ (?:asks|asked|wants to know|wonders)[:,])\s+(?:if |whether )?",
        "",
    ),
    (
        r"^for (?:compliance|legal|an audit|our audit|the audit|work|school|class|homework|research|statistics|testing|"
        r"an article|a blog post|a review|a talk|a presentation|our wiki|a comparison|reference|planning)(?: reasons| "
        r"purposes)?,?\s+",
        "",
    ),
    (
        r",?\s*(?:if you['’]?d be so kind|if you would be so kind|would you(?: please)?|could you(?: please)?|will you|"
        r"can you|if that is ok|if that['’]s ok|when you have a moment|if it['’]?s not too much trouble|for a start|"
        rf"that is|to be precise|by any chance|i guess|i think|i suppose|exactly|you know){_END}",
        "",
    ),
    (r"\b(?:in|with) (?:just )?(?:a|one|a single|a few|two|short|few|brief) (?:sentence|sentences|words|word)\b", ""),
    # The orders in which lists of products and of releases are told anyway; any other is not understood.
    (rf"\b(releases|versions|builds)\b([^,]*),?\s*(?:newest|latest|most recent) first{_END}", r"\1\2"),
    (rf",?\s*(?:in alphabetical order|alphabetically|sorted by (?:name|title)|one by one){_END}", ""),
    (rf",?\s*\b(?:as well|too|alike|equally|together|at the same time|simultaneously|also){_END_OF_PART}", ""),
    # What somebody may choose from who asks what a thing is or needs. Anywhere else such words limit what is asked for.
    (
        rf"^(what (?:is|are|do|does|can|will|would|should)\b.+?|(?:what|which) (?:kind|licen[cs]e|platforms?)\b.+?)"
        rf"\s*[-–—,:]\s*(?:(?:an?|the|{_KINDS}|{_LICENCES}|{_ON}),? )*"
        rf"(?:or )?(?:something else|anything else|something different|what|others){_END}",
        r"\1",
    ),
    (r"\bvery (?=latest|newest|first|last|oldest|earliest|most recent)", ""),
    (r"\b(?:whole|entire|complete|full) (?=catalog|store|shop)", ""),
    (r"\b(?:these|those|this) (?=days\b)", "these "),
    (r"\bonline (?=in )", ""),
    (rf"\b({_KINDS}) only\b", r"\1"),
    (rf"\bonly ({_KINDS}){_END}", r"\1"),
    # Word order
    (r"\b(work|run|play|install|go|be used)(s?) there\b", r"\1\2 on it"),
    (
        r"\b(yesterday|today|this week|last week|this month|last month|this year|last year)['’]s (.+?)"
        rf"{_END}",
        r"\2 \1",
    ),
    (rf"\bnon[- ]?({_CHANNEL}) (releases|versions|builds|ones)\b(.*?){_END}", r"\2\3 except \1"),
    (rf"\b(?:unstable|pre-?release|preview) (releases|versions|builds)\b(.*?){_END}", r"\1\2 except stable"),
    (rf"\b(?:pre-?releases|previews)\b(.*?){_END}", r"releases\1 except stable"),
    (
        rf"\bif {_PERSON} (?:only |just )?(?:use|have|own|run|am on|are on|play on|work on) (?:only )?(?:a |an "
        rf"|the |my )?"
        rf"({_ON})\b",
        r"on \1",
    ),
    (r"\bwho (\w+) (.{2,60}?),? and who \1 (.{2,60}?)(?=[?.!]*$)", r"who are the makers of \2 and \3"),
    (r"^(?:a )?(?:two|three|four|2|3|4)[- ]way comparison(?: of| between)?:?", "compare"),
    (r"^(.+?)\s*[-–—:,]\s*(.+?),? or not(?=[?.!]*$)", r"is \1 \2"),
    (rf"^{_BROKE}[\s,:;.!-]+(?:so |and |but )?(.+?){_END}", r"\1 for free"),
)
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), other) for pattern, other in _RULES)
_OF_KIND = re.compile(
    r"\bthe (?:game|app|application|tool|utility|program|product|title|software)(?: (?:called|named|titled))?\s+\W?$",
    re.IGNORECASE,
)


def plainer(question: str, held: Sequence[str]) -> str:
    """The question in plainer words, what is within the names that it holds left alone."""
    text = question
    for name in sorted(set(held), key=len, reverse=True):
        text = _without_kind(text, name)
    for pattern, other in _COMPILED:
        text = pattern.sub(partial(_replaced, other, held), text)
    return " ".join(text.split())


def _replaced(other: str, held: Sequence[str], found: re.Match[str]) -> str:
    """The other words; the same where a name would be cut or lost."""
    whole = found.string
    for name in held:
        start = whole.find(name)
        if start >= 0 and start < found.end() and found.start() < start + len(name):
            is_within = found.start() <= start and start + len(name) <= found.end()
            if not is_within:
                return found[0]
    told = found.expand(other)
    return told if _said(told, held) == _said(found[0], held) else found[0]


def _said(text: str, held: Sequence[str]) -> list[str]:
    return [name for name in held if name in text]


def _without_kind(text: str, name: str) -> str:
    """The text without "the game" before the name."""
    start = text.find(name)
    before = _OF_KIND.sub("", text[:start]) if start > 0 else ""
    return before + text[start:] if start > 0 and before != text[:start] else text
