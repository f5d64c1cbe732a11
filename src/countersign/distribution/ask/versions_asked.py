"""The forms of questions about versions beside each other: is it the newest, which came before, which told of it."""

import re

from countersign.distribution.ask.query import Changes, IsNewer, IsNewest, NewestOfEach, Noting, Query, Releases
from countersign.distribution.ask.questions import Form
from countersign.distribution.ask.templates import Captured, Slot, value, values
from countersign.distribution.ask.things import Things
from countersign.distribution.ask.told import Named, every
from countersign.distribution.ask.values import Values
from countersign.distribution.ask.vocabulary import phrases
from countersign.distribution.ask.wordlists import CHANNELS, RELEASE, VERSION_ORDER, said

SLOTS: dict[str, Slot] = {
    "side": phrases(
        said(
            "before|below|older than|prior to|earlier than|lower than|preceding|under|up to but not including|pre",
            "below",
        )
        | said("after|above|newer than|later than|higher than|following|since|beyond|past|more recent than", "above")
    ),
}
_DATE = re.compile(r"(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?")
V = "[version|release|build|v|update]"
RELEASE_OF = (
    f"[the] {{product}} {V} {{version}}",
    f"[the] {V} {{version}} (of|for|in|from) {{product}}",
)
NEWER = "(newer|later|more recent|higher|more current|fresher|more up to date)"
OLDER = "(older|earlier|less recent|lower)"
_GOT = (
    "(get|gain|add|introduce|receive|bring|learn|gotten|gained|added|introduced|received|brought|learned|fix|fixed|"
    "include|included|start to have|start having|begin to have|acquire|acquired|obtain|have|first have|first get|"
    "start to support|start supporting|support|bring in|brought in|get support for|first add|first mention|mention)"
)
_GAVE = (
    "(added|adds|brought|brings|introduced|introduces|has|have|mentions|mentioned|fixed|fixes|included|includes|"
    "came with|comes with|contains|contained|got|gets|gained|tells of|talks about|is about|was about|gave us|"
    "speaks of|brought in|was the one with|is the one with|was the first with|is the first with|first had|"
    "first added|improved|improves|changed|changes|removed|removes|says)"
)
_A = "[a|an|the|its|any|support for|something about|about]"


def _is_newest(captured: Captured) -> Query | None:
    if value(captured, "newest", "newest") != "newest":
        return None
    return IsNewest(value(captured, "product"), value(captured, "version"), value(captured, "channel"))


def _is_newer(captured: Captured) -> Query | None:
    found = values(captured, "version")
    return IsNewer(value(captured, "product"), found[1], found[0]) if len(found) > 1 else None


def _is_older(captured: Captured) -> Query | None:
    found = values(captured, "version")
    return IsNewer(value(captured, "product"), found[0], found[1]) if len(found) > 1 else None


def _any_newer(captured: Captured) -> Query | None:
    version = value(captured, "version")
    if _DATE.fullmatch(version):
        return None
    return IsNewer(value(captured, "product"), version, channel=value(captured, "channel"))


def _beyond(captured: Captured) -> Query | None:
    """Releases with versions after the one that is named, or before it."""
    version = value(captured, "version")
    if _DATE.fullmatch(version):
        return None
    is_below = value(captured, "side") == "below"
    return Releases(
        Named(value(captured, "product")),
        value(captured, "channel"),
        above=None if is_below else version,
        below=version if is_below else None,
    )


def _next(captured: Captured) -> Query | None:
    told = _beyond(captured)
    if not isinstance(told, Releases):
        return None
    order = "newest" if told.below else "oldest"
    return Releases(told.where, told.channel, None, None, order, 1, told.above, told.below)


_NO_NOTE = frozenset(word for table in (VERSION_ORDER, CHANNELS, RELEASE) for each in table for word in each.split())


def _noting(captured: Captured) -> Query | None:
    """None where the words are about releases, not about what is in them."""
    if _NO_NOTE & {*value(captured, "topic")}:
        return None
    return Noting(value(captured, "product"), value(captured, "topic"))


def _each(captured: Captured) -> Query | None:
    told: Things | Values | None = value(captured, "things", value(captured, "products"))
    channel = value(captured, "channel") or value(captured, "channel_noun")
    order = value(captured, "newest", "newest")
    if isinstance(told, Values):
        return NewestOfEach(told.condition, channel, order) if told.joint else None
    if told is None or not told.is_plain:
        return None
    # Of products without a release none is the newest.
    return NewestOfEach(every([told.where, *values(captured, "where")]), channel, order)


def _since(captured: Captured) -> Query | None:
    return Changes(value(captured, "product"), after=value(captured, "version"))


_EACH = "(each|every|all|each of|all of|every one of|each one of|all the|all of the|each of the)"

VERSIONS_ASKED = (
    *(
        Form(
            f"(is|was|are) {each} [a|an|the] {{newest}} [{{channel}}] [{{one_release}}|one|version number] "
            "[available|out|there|of it|{here}] [(in|on) [the] {channel} [channel]]",
            _is_newest,
        )
        for each in RELEASE_OF
    ),
    Form(
        f"(is|was) {V} {{version}} [a|an|the] {{newest}} [{{channel}}] [{{one_release}}|version number|one] "
        "(of|for|from|in) {product}",
        _is_newest,
    ),
    Form(
        f"(is|was) {V} {{version}} [the] {{newest}} [{{channel}}] {{product}} [{{channel}}] [{{one_release}}]",
        _is_newest,
    ),
    Form(
        f"(is|was) [the] {{newest}} [{{channel}}] ({{one_release}}|version number) (of|for|from) {{product}} "
        f"{V} {{version}}",
        _is_newest,
    ),
    Form(f"(is|was) {{product}} 's {{newest}} [{{channel}}] {{one_release}} {V} {{version}}", _is_newest),
    Form(f"(is|was) [the] {{newest}} {{product}} [{{channel}}] [{{one_release}}] {V} {{version}}", _is_newest),
    Form(f"is {{product}} (at|on|up to) {V} {{version}}", _is_newest),
    *(Form(f"(am i|are we) {{newest}} with {each}", _is_newest) for each in RELEASE_OF),
    *(
        Form(
            f"(am i|are we|is it|is that|is this|is mine) (behind|outdated|out of date|lagging behind|lagging|old|"
            f"obsolete|late) [of|in|with|on|for|by|having|using|running] {each}",
            _any_newer,
        )
        for each in RELEASE_OF
    ),
    *(
        Form(
            f"(is|was|has) {each} [been] [an|a] (outdated|out of date|old|obsolete|superseded|replaced|overtaken|"
            "succeeded|followed up|behind) [by] [a|an|anything|something] [newer|later|more recent] [one|"
            "{one_release}]",
            _any_newer,
        )
        for each in RELEASE_OF
    ),
    *(
        Form(f"(is|was|are) {each} {NEWER} than [{{product}}] {V} {{version}} [of {{product}}]", _is_newer)
        for each in RELEASE_OF
    ),
    *(
        Form(f"(is|was|are) {each} {OLDER} than [{{product}}] {V} {{version}} [of {{product}}]", _is_older)
        for each in RELEASE_OF
    ),
    Form(f"(is|was) {V} {{version}} {NEWER} than {V} {{version}} (of|for|in) {{product}}", _is_newer),
    Form(f"(is|was) {V} {{version}} {OLDER} than {V} {{version}} (of|for|in) {{product}}", _is_older),
    Form(
        f"(did|does|has) {{product}} {V} {{version}} (come|came|follow|appear|come out|arrive) after {V} {{version}}",
        _is_newer,
    ),
    *(
        Form(
            f"(is there|are there|was there|do you have|have you got|do we have|does there exist|has there been|have "
            f"there been|got|any|anything) [been] [a|an|any|anything|something] [{{channel}}] [{{release}}] {NEWER} "
            f"[{{channel}}] "
            f"[{{release}}] [than|of] {each} [out|available]",
            _any_newer,
        )
        for each in (*RELEASE_OF, "{product} than {version}")
    ),
    Form(
        f"(is|are|was) there [a|an|any|anything|something] [{{channel}}] [{{release}}] (of|for) {{product}} "
        f"({NEWER} than|after|beyond|since) {V} {{version}}",
        _any_newer,
    ),
    Form(f"(does|has|did) {{product}} (have|had|got|get) [a|an|any] {NEWER} {{release}} than {{version}}", _any_newer),
    *(
        Form(
            f"[{{list_head}}] [{{determiner}}] [{{channel}}] {start} [that|which] [is|are|was|were|came|come] "
            f"{{side}} {V} {{version}}",
            _beyond,
        )
        for start in ("{release} (of|for|from|in) {product}", "{product} ['s] [{channel}] {release}")
    ),
    Form(
        f"[{{list_head}}] [{{determiner}}] (pre) {V} {{version}} [{{channel}}] {{release}} (of|for|from) {{product}}",
        lambda captured: _beyond((*captured, ("side", "below"))),
    ),
    Form(
        f"[{{list_head}}] [{{determiner}}] (post) {V} {{version}} [{{channel}}] {{release}} (of|for|from) {{product}}",
        _beyond,
    ),
    Form(
        "[{list_head}] [{determiner}] {product} ['s] (pre) {version} {release}",
        lambda captured: _beyond((*captured, ("side", "below"))),
    ),
    *(
        Form(
            f"[{{list_head}}] [the] [{{channel}}] [{{one_release}}] [of {{product}}] [is|was|came|did|directly|"
            f"right|just] "
            f"[came|come|out|immediately|directly|right|just] {{side}} {each}",
            _next,
        )
        for each in (*RELEASE_OF, f"{V} {{version}}")
    ),
    Form(
        f"(what|which) [{{channel}}] [{{one_release}}] (preceded|precedes) {{product}} {V} {{version}}",
        lambda captured: _next((*captured, ("side", "below"))),
    ),
    Form(f"(what|which) [{{channel}}] [{{one_release}}] (followed|follows|succeeded) {{product}} {V} "
         f"{{version}}", _next),
    Form(
        f"(what|which) [{{channel}}] {{one_release}} of {{product}} (preceded|precedes) {V} {{version}}",
        lambda captured: _next((*captured, ("side", "below"))),
    ),
    Form(
        f"(what|which) [{{channel}}] {{one_release}} of {{product}} (followed|follows|succeeded) {V} {{version}}", _next
    ),
    # Of each
    Form(
        f"for [{_EACH}|both|both of] {{products}} {{list_head}} [the|its|their] {{newest}} ({{channel}} [{{release}}]|"
        "{release}|{channel_noun})",
        _each,
    ),
    Form(
        f"for {_EACH} {{things}} {{list_head}} [the|its|their] {{newest}} ({{channel}} [{{release}}]|{{release}}|"
        "{channel_noun})",
        _each,
    ),
    Form(
        f"[{{list_head}}] [the] {{newest}} [{{channel}}] {{release}} (of|for|from) [{_EACH}] {{products}} [each]", _each
    ),
    Form(f"[{{list_head}}] [the] {{newest}} {{channel_noun}} (of|for|from) [{_EACH}] {{products}} [each]", _each),
    Form(
        f"[{{list_head}}] [the] {{newest}} [{{channel}}] {{release}} (of|for|from|in) {_EACH} {{things}} [{{where}}]",
        _each,
    ),
    Form(f"[{{list_head}}] [the] {{newest}} {{channel}} (of|for|from|in) {_EACH} {{things}} [{{where}}]", _each),
    Form("[{list_head}] [the] {newest} [{channel}] versions (of|for) {things}", _each),
    Form(f"[{{list_head}}] [the] {{newest}} [{{channel}}] {{release}} {_EACH} {{things}} (has|have|had)", _each),
    Form("(what|which) (version|versions|release|releases) (is|are) {products} (at|on|up to)", _each),
    Form("(what|which) (version|release|versions) (is|are) (each|every|all|each of|all of) {things} (at|on)", _each),
    # Changes since
    *(
        Form(
            f"{start} (in|for|to|with|of) {{product}} (since|after|compared to|compared with|over|relative to|versus|"
            f"on top of) {V} {{version}}",
            _since,
        )
        for start in (
            "(what is|what was|what has|what) [new|changed|different|been changed|been added|added|improved]",
            "[{list_head}] [the|all] (changes|release notes|notes|changelog|news|improvements)",
        )
    ),
    Form(
        f"[{{list_head}}] [the|all] {{product}} ['s] (changes|release notes|notes|changelog) (since|after) "
        f"{V} {{version}}",
        _since,
    ),
)
NOTES_ASKED = (
    Form("{product} {topic} (since|from|in|as of) (which|what) {release} [on]", _noting),
    Form("{product} {topic} since when", _noting),
    Form(
        f"(which|what) {{product}} [{{channel}}] {{release}} {_GAVE} {_A} {{topic}} (in it|in its notes|in the notes)",
        _noting,
    ),
    Form(
        f"(in|with|since|from|as of) (which|what) [{{product}} ['s]] [{{channel}}] {{release}} (did|does|has|is|was) "
        f"{{product}} {_GOT} {_A} {{topic}}",
        _noting,
    ),
    Form(f"(which|what) [{{channel}}] {{release}} of {{product}} {_GAVE} {_A} {{topic}}", _noting),
    Form(f"(which|what) {{product}} [{{channel}}] {{release}} {_GAVE} {_A} {{topic}}", _noting),
    Form(f"(which|what) [{{channel}}] {{release}} {_GAVE} {_A} {{topic}} (to|in|into) {{product}}", _noting),
    Form(f"when (did|does|has) {{product}} [first] {_GOT} {_A} {{topic}}", _noting),
    Form(
        f"(when|in which {{release}}|in what {{release}}|with which {{release}}|which {{release}}) (was|were|"
        f"is|are|did) "
        f"{_A} {{topic}} (added|introduced|brought|fixed|mentioned|included|come|new|changed|removed|land|"
        f"appear|arrive) "
        f"(to|in|into|by|of|with) {{product}}",
        _noting,
    ),
    Form(
        f"(in which {{release}}|in what {{release}}|with which {{release}}) of {{product}} (was|were|is|are|did) "
        f"{_A} {{topic}} (added|introduced|brought|fixed|mentioned|included|come|new|changed|removed|land|"
        f"appear|arrive)",
        _noting,
    ),
    Form(
        f"(since when|since which {{release}}|from which {{release}} on) (does|has|did|can) {{product}} "
        f"{_GOT} {_A} {{topic}}",
        _noting,
    ),
    Form(
        f"(what|which) [{{channel}}] {{release}} of {{product}} (do i need for|first had|should i get for|do "
        f"i need to get) {_A} {{topic}}",
        _noting,
    ),
    Form(f"(which|what) {{release}} notes of {{product}} (mention|have|contain|include) {_A} {{topic}}", _noting),
)
