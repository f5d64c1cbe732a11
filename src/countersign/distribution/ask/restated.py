"""Other ways to put a question of several parts: the name first, a remark about the asker, a greeting, a tail."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from countersign.distribution.ask.amended import amended
from countersign.distribution.ask.dates import MONTHS, WEEKDAYS
from countersign.distribution.ask.moved import moved
from countersign.distribution.ask.names import Names
from countersign.distribution.ask.scenery import is_scenery
from countersign.distribution.ask.tokens import Token
from countersign.distribution.ask.wordlists import CHANNELS, KINDS, OPEN_SOURCE, PLATFORMS, RELEASE

MOST_PARTS = 6
MOST_RESTATED = 18
_BREAK = re.compile(r"[.!?;:…]+(?=\s|$)|\s+[-–—]+\s*(?=\S)|\s*[–—]\s*|\n+")
_COMMA = re.compile(r"\s*,\s+")
_EITHER = re.compile(f"{_BREAK.pattern}|{_COMMA.pattern}")
_CHAT = re.compile(
    r"(?:hi|hello|hey|hiya|howdy|good (?:morning|day|evening|afternoon)|greetings|dear|thanks?|thank you|thx|cheers|"
    r"sorry|excuse me|pardon|please|ok|okay|well|right then|so|quick question|question|one question|a question|"
    r"another question|one more thing|one more question|next question|just (?:wondering|curious|asking)|wondering|"
    r"curious|hope you can help|can you help|help|many thanks|great|nice|there|all|everyone|folks|team|friend|friends|"
    r"you|a lot|so much|very much|in advance|for (?:a|my) (?:friend|report|notes?|records?|colleague|boss|project)|"
    r"for the record|asking for a friend|in short|in brief|briefly|to be (?:clear|precise|sure|exact)|by the way|btw|"
    r"again|me again|what i want to know|here is my question|my question|tell me|answer me this|if i may ask|if i may|"
    r"hope (?:you are|you['’]re|all is|everyone is|this finds you)(?: doing)?(?: well| fine| good)?(?: today)?|"
    r"(?:list|show|name|give me|show me|tell me) (?:them|those|these)(?: all)?|if you can|if you could|if you "
    r"do not mind|if you don't mind|if possible|i wonder|i was wondering|"
    r"i am wondering|i'm wondering|let me ask|just one thing|one thing|simple question|hmm+|um+|er+|oh|"
    r"thanks in advance|that is all|that's all|have a nice day|bye|regards|and|but|also|or)"
    r"(?:[\s,]+|$)"
)
_ASKER = re.compile(
    r"(?:(?:and|but|so|because|since|as) )?"
    r"(?:i|i'm|i've|i'd|im|ive|we|we're|we've|my|our|someone|somebody|a (?:friend|colleague|mate|customer)|"
    r"(?:he|she|they)|people|everyone|everybody|mine|ours|there is this|there's this)\b"
)
_LIMIT = re.compile(
    r"\b(?:only(?! (?:use|have|has|own|got|run|play on))|not|no|never|without|except|but|unless|n't|than|most|"
    r"least|best|worst|cheap\w*|price\w*|cost\w*|rat\w+|"
    r"review\w*|popular|euros?|dollars?|pounds?|bucks|budget|under|over|hat\w+|dislik\w+|don't|won't|"
    r"can['’]t(?! (?:decide|choose|remember|find|recall|figure|tell|see))|\d+)\b|[$€£]"
)
_TELLING = frozenset(
    word
    for table in (KINDS, CHANNELS, OPEN_SOURCE, RELEASE)
    for phrase in table
    for word in phrase.split()
    if word not in ("video", "computer", "whose", "is", "code", "with", "are")
) | frozenset(
    (
        *(*MONTHS, *WEEKDAYS, "free", "paid", "paying", "buy", "own", "week", "weeks", "month", "months", "year"),
        *("years", "day", "days", "today", "yesterday", "since", "before", "after", "until", "weekend", "licence"),
        *("license", "proprietary", "gratis", "updated", "released", "published", "native", "offline"),
    )
)
_PRONOUN = re.compile(
    r"\b(?P<own>its|their|his|her)\b(?!\w)|\b(?P<it>both(?: of (?:them|these|those))?(?! \w+ and)|it|that one|"
    r"this one|that|this|them|they|these|those|the two|"
    r"the (?:game|app|tool|product|program|thing))\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:no|not|never|none|neither|without)\b|n['’]t\b")
_ONES = re.compile(r"(?i)\b(?:ones|one|of (?:them|those|these)|they|them|those|these)\b")
_HOW_MANY = re.compile(
    r"(?:and )?how many(?: (?:are|is|of them are|do you have|would that be))?(?: there)?(?: of them)?"
    r"(?: in total| altogether| overall| in all)?"
)
_WHETHER = re.compile(
    r"(?:and )?(?:does (?:it|that|this|such a thing|one) exist|do (?:they|these|those|any) exist|is "
    r"there (?:one|such a "
    r"thing|any|anything)|are there any|(?:is|was) (?:it|that) (?:so|true|right|correct|possible|there)|"
    r"is that (?:a thing)|right|correct|true|true or false|yes or no|yes|yeah|or not|or no|do you have "
    r"(?:it|one|any|that)|"
    r"got any|possible|available|do you know|(?:is|are|does|do|did|was|has|have|can)n['’]t (?:it|they|there|that))"
)
_OR = re.compile(r"(?i)\bn?or\b")
_LEADS = re.compile(r"(?:(?:and|but|so|now|then|also|just|well|because)[\s,]+)+", re.IGNORECASE)


class _Part(NamedTuple):
    """A part of the question: its text, the names in it, and from its first to its last word that says something of
    products, as kinds, tags, licences, channels and times do."""

    text: str
    products: tuple[str, ...]
    orgs: tuple[str, ...]
    platforms: tuple[str, ...]
    is_name: bool
    said: str


def restated(question: str, tokens: Sequence[Token], names: Names) -> list[str]:
    """Questions that mean the same where this one means anything, the likeliest first."""
    found: dict[str, None] = dict.fromkeys(_with_front_moved(question, tokens, names))
    for breaks in (_BREAK, _COMMA, _EITHER):
        parts = _parts(question, tokens, names, breaks)
        if 1 <= len(parts) <= MOST_PARTS:
            for each in _joined(parts) if len(parts) > 1 else [parts[0].text]:
                text = " ".join(each.split()).strip(" ,")
                if text and text != question:
                    found[text] = None
    return list(found)[:MOST_RESTATED]


def _with_front_moved(question: str, tokens: Sequence[Token], names: Names) -> Iterator[str]:
    """What is said before the first comma or colon where most people say it."""
    held = _held(tokens, names)
    for mark in re.finditer(r"[,:]\s+|\s+[-–—]+\s+", question):
        if not any(tokens[first].start < mark.start() < tokens[last - 1].end for first, last, _ in held):
            yield from moved(question[: mark.start()], question[mark.end() :].rstrip(" ?!."))


def _parts(question: str, tokens: Sequence[Token], names: Names, breaks: re.Pattern[str]) -> list[_Part]:
    """The question cut where a sentence, a colon or a dash ends a part, never within a name."""
    held = _held(tokens, names)
    cuts, start = list[tuple[int, int]](), 0
    for mark in breaks.finditer(question):
        if not any(tokens[first].start < mark.start() and mark.end() < tokens[last - 1].end for first, last, _ in held):
            cuts.append((start, mark.start()))
            start = mark.end()
    cuts.append((start, len(question)))
    told = _told(tokens, names)
    made = (_part(question, tokens, held, told, (first, last)) for first, last in cuts)
    return [part for part in made if part is not None]


def _held(tokens: Sequence[Token], names: Names) -> list[tuple[int, int, str]]:
    """Where products and organisations are named, each by its longest name: first token, the one after, the kind."""
    found: list[tuple[int, int, str]] = []
    for place in range(len(tokens)):
        if any(first <= place < last for first, last, _ in found):
            continue
        ways = [(ways[0][1], kind) for kind in ("org", "product") if (ways := names[kind].get(place))]
        if ways:
            end, kind = max(ways)
            found.append((place, end, kind))
    return found


def held_names(question: str, tokens: Sequence[Token], names: Names) -> list[str]:
    """The names in the question as they are written there."""
    return [question[tokens[first].start : tokens[last - 1].end] for first, last, _ in _held(tokens, names)]


def _told(tokens: Sequence[Token], names: Names) -> frozenset[int]:
    """The places of words that say something of products, other than names of them and platforms."""
    found = {
        place
        for kind in ("tag", "license")
        for start, ways in names[kind].items()
        for _, end in ways
        for place in range(start, end)
    }
    telling = (place for place, token in enumerate(tokens) if token.word in _TELLING and not _has(tokens, place))
    return frozenset((*found, *telling))


def _has(tokens: Sequence[Token], place: int) -> bool:
    """Whether it is the "own" of "I own a Mac"."""
    before = tokens[place - 1].word if place else ""
    return tokens[place].word in ("own", "buy") and before in ("i", "we", "only", "also", "both")


def _part(
    question: str,
    tokens: Sequence[Token],
    held: Sequence[tuple[int, int, str]],
    told: frozenset[int],
    cut: tuple[int, int],
) -> _Part | None:
    first, last = cut
    text = _plain(question[first:last])
    within = [
        (start, _versioned(tokens, end), kind) for start, end, kind in held if first <= tokens[start].start < last
    ]
    if not within and _is_chat(text):
        return None
    said = [(question[tokens[start].start : tokens[end - 1].end], kind) for start, end, kind in within]
    words = [token.word for token in tokens if first <= token.start < last]
    products = _of_kind_said(said, "product")
    return _Part(
        text,
        products,
        _of_kind_said(said, "org"),
        _platforms(words) if not products else (),
        _is_bare(text, said),
        _span(question, tokens, _places(tokens, told, cut), within),
    )


_LEAD_OF_NAME = re.compile(
    r"^(?:the (?:game|app|tool|product) |regarding |about |as for |concerning |re |for |on |with )"
)


def _is_bare(text: str, said: Sequence[tuple[str, str]]) -> bool:
    """Whether there is a name in the text and nothing else."""
    return _LEAD_OF_NAME.sub("", text.lower()).rstrip("?!. ") in [name.lower() for name, _ in said]


def _places(tokens: Sequence[Token], told: frozenset[int], cut: tuple[int, int]) -> list[int]:
    return [place for place in told if cut[0] <= tokens[place].start < cut[1]]


def _is_chat(text: str) -> bool:
    return not _CHAT.sub("", f"{text.lower()} ").strip(" ,!?.")


def _of_kind_said(said: Sequence[tuple[str, str]], kind: str) -> tuple[str, ...]:
    return tuple(name for name, each in said if each == kind)


def _versioned(tokens: Sequence[Token], end: int) -> int:
    """The place after a version that follows a name."""
    while end < len(tokens) and tokens[end].word in ("version", "v", "release"):
        end += 1
    return end + 1 if end < len(tokens) and any(letter.isdigit() for letter in tokens[end].word) else end


def _span(question: str, tokens: Sequence[Token], told: Sequence[int], within: Sequence[tuple[int, int, str]]) -> str:
    places = [place for place in told if not any(first <= place < end for first, end, _ in within)]
    return question[tokens[min(places)].start : tokens[max(places)].end] if places else ""


def _plain(text: str) -> str:
    """The text without a greeting before it and thanks after it."""
    text = text.strip(" ,.!?;:-–—\n\t")
    return _LEADS.sub("", text, count=1) if _LEADS.match(text) and len(text.split()) > 2 else text


def _platforms(words: Sequence[str]) -> tuple[str, ...]:
    """The platforms that are named, the longest phrase at each place."""
    found: list[str] = []
    place = 0
    while place < len(words):
        for length in (3, 2, 1):
            phrase = " ".join(words[place : place + length])
            if phrase in PLATFORMS:
                found.append(phrase)
                place += length - 1
                break
        place += 1
    return tuple(dict.fromkeys(found))


def _joined(parts: Sequence[_Part]) -> Iterator[str]:
    """The parts put together in every way that keeps what each of them says."""
    last = parts[-1].text
    before = " ".join(part.text for part in parts[:-1])
    if _HOW_MANY.fullmatch(last.lower()):
        yield f"how many {before}"
    if _WHETHER.fullmatch(last.lower()):
        # What "no, is there?" wants to hear, a Yes or a No, nobody can tell.
        yield from () if _DENIED.search(before.lower()) else _whether(before)
        return
    yield from amended(before, last, is_asker=bool(_ASKER.match(before.lower())))
    for place in (len(parts) - 1, 0):
        rest = [part for at, part in enumerate(parts) if at != place]
        if all(_is_context(part, is_before=place > 0) for part in rest):
            yield from _with(parts[place].text, rest)


def _whether(said: str) -> Iterator[str]:
    yield from (f"is there {said}", f"are there {said}", said, f"is it true that {said}", f"is {said}")


def _is_context(part: _Part, *, is_before: bool) -> bool:
    """Whether the part sets the scene and asks nothing: a name, or something about the asker without a limit in it."""
    text = part.text.lower()
    if part.is_name or (not _ASKER.match(text) and _is_subject(part)):
        return True
    rest = _without_names(part, text)
    return is_before and bool(_ASKER.match(text)) and not _LIMIT.search(rest) and is_scenery(_unspoken(part, rest))


def _unspoken(part: _Part, rest: str) -> str:
    """What is left of a remark without what is said again in the question: platforms, kinds, tags."""
    for phrase in (part.said.lower(), *part.platforms):
        rest = rest.replace(phrase, " ") if phrase else rest
    return rest


def _without_names(part: _Part, text: str) -> str:
    for name in sorted((*part.products, *part.orgs), key=len, reverse=True):
        text = text.replace(name.lower(), " ")
    return text


_MAKERS = re.compile(
    r"^the (?:makers?|people|person|team|studio|company|developers?|publishers?|ones?|folks|creators?|authors?) "
    r"(?:of|behind|(?:who|that|which) (?:did|made|built|wrote|created|published|developed|put out|makes?|do|does))\b"
)


def _is_subject(part: _Part) -> bool:
    """Whether the part is a noun phrase about products that it names: "Keyturn 2.9.0", "Inkwell and Inkwell Pro"."""
    rest = _MAKERS.sub("", _without_names(part, part.text.lower()))
    words = re.findall(r"[^\s,/&]+", rest)
    small = {"and", "or", "vs", "versus", "the", "of", "version", "game", "app", "tool", "beta", "nightly", "alpha"}
    small |= {"stable", "from", "to", "both", "with", "for", "between", "release", "in"}
    return bool(part.products or part.orgs) and all(word in small or word[-1:].isdigit() for word in words)


def _with(asking: str, context: Sequence[_Part]) -> Iterator[str]:
    """The asking part with what the others are about in it."""
    asker = list(filter(_is_asker, context))
    subjects = [part.text for part in context if not _is_asker(part)]
    named = list(filter(_names_any, asker))
    said = _unsaid(asking, asker)
    if said:
        return iter([] if named else _of_kind(asking, said[0]))
    return _about(asking, subjects, named) if subjects or named else iter([asking])


def _names_any(part: _Part) -> bool:
    return bool(part.products or part.orgs or part.platforms)


def _is_asker(part: _Part) -> bool:
    return _ASKER.match(part.text.lower()) is not None and not part.is_name


def _unsaid(asking: str, asker: Sequence[_Part]) -> list[str]:
    """What the asker said of products that the asking part does not say again."""
    return [part.said for part in asker if not _words(part.said) <= _words(asking)]


def _about(asking: str, subjects: Sequence[str], named: Sequence[_Part]) -> Iterator[str]:
    """The asking part about the subjects, or about what the asker named; nothing where there are both."""
    if subjects and named:
        return
    platforms = [] if _all(part.products for part in named) else _all(part.platforms for part in named)
    yield from _substituted(asking, _subject(subjects, named))
    if not _PRONOUN.search(asking):
        yield from _appended(asking, _subject(subjects, named), is_platform=bool(platforms))


def _subject(subjects: Sequence[str], named: Sequence[_Part]) -> str:
    products, orgs = _all(part.products for part in named), _all(part.orgs for part in named)
    return " ".join(subjects) or " and ".join(products or orgs or _all(part.platforms for part in named))


def _all(named: Iterable[tuple[str, ...]]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(named)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.lower()))


def _of_kind(asking: str, said: str) -> Iterator[str]:
    """What the asker spoke of, in place of "ones" or "them"."""
    if found := _ONES.search(asking):
        yield asking[: found.start()] + said + asking[found.end() :]
        return
    if found := re.match(
        r"(?i)(?:which|what)\s+(?=(?:are|is|run|runs|have|has|were|can|do|work|support|cost|would|came)\b)", asking
    ):
        yield f"{found[0]}{said} {asking[found.end() :]}"


def _substituted(asking: str, subject: str) -> Iterator[str]:
    """The subject in place of a pronoun."""
    if found := _PRONOUN.search(asking):
        said = f"{subject}'s" if found["own"] else subject
        first = asking[: found.start()] + said + asking[found.end() :]
        yield first
        if second := _PRONOUN.search(asking, found.end()):
            said = f"{subject}'s" if second["own"] else subject
            yield asking[: second.start()] + said + asking[second.end() :]
            yield asking[: found.start()] + asking[found.end() : second.start()] + said + asking[second.end() :]
        yield asking[: found.start()] + asking[found.end() :] + f" {subject}"
        if found["own"]:
            yield f"{asking[: found.start()]}{asking[found.end() :]} of {subject}"


def _appended(asking: str, subject: str, *, is_platform: bool) -> Iterator[str]:
    if is_platform:
        if _platforms(re.findall(r"[^\W_]+", asking.lower())):
            yield asking
            return
        if not _OR.search(asking):
            yield f"{asking} for {subject}"
            yield f"{asking} on {subject}"
        return
    for joint in (" of ", " ", " by ", " in ", " for ", " than "):
        yield f"{asking}{joint}{subject}"
    yield f"{subject} {asking}"
    yield f"{subject}'s {asking}"
    yield f"does {subject} {asking}"
    yield f"is {subject} {asking}"
