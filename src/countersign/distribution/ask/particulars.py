"""The forms of questions about particular products: newest version, what changed, compare, does it run on, who makes."""

from typing import Any

from countersign.distribution.ask.conditions import Values, ranged
from countersign.distribution.ask.query import (
    About,
    AnyCondition,
    By,
    Changes,
    Check,
    Compare,
    Either,
    Every,
    HasVersion,
    Named,
    Newest,
    On,
    Query,
    Released,
    WhenReleased,
)
from countersign.distribution.ask.questions import Form
from countersign.distribution.ask.templates import Captured, value, values


def _slugs(told: Values) -> tuple[str, ...]:
    """The products of a list."""
    condition = told.condition
    held: tuple[AnyCondition, ...] = condition.of if isinstance(condition, Every | Either) else (condition,)
    return tuple(each.value for each in held if isinstance(each, Named))


def _platform(told: AnyCondition | None) -> Any:
    """The single platform that is meant; None for a family of them."""
    return told.value if isinstance(told, On) else None


def _newest(captured: Captured) -> Query | None:
    platform = value(captured, "platform")
    if platform is not None and _platform(platform) is None:
        return None
    return Newest(
        value(captured, "product"),
        channel=value(captured, "channel"),
        platform=_platform(platform),
        order=value(captured, "newest", "newest"),
        by=value(captured, "one_release", "version"),
    )


def _moment(captured: Captured) -> Query | None:
    return Newest(
        value(captured, "product"),
        channel=value(captured, "channel"),
        order=value(captured, "newest", "newest"),
        by=value(captured, "one_release", "date"),
        about="moment",
    )


def _first_moment(captured: Captured) -> Query | None:
    return Newest(
        value(captured, "product"), channel=value(captured, "channel"), order="oldest", by="date", about="moment"
    )


def _when(captured: Captured) -> Query | None:
    return WhenReleased(value(captured, "product"), value(captured, "version"))


def _has_version(captured: Captured) -> Query | None:
    return HasVersion(
        value(captured, "product"),
        value(captured, "version"),
        value(captured, "channel"),
        **ranged(value(captured, "when")),
    )


def _changes(captured: Captured) -> Query | None:
    if value(captured, "newest", "newest") != "newest":
        return None
    return Changes(value(captured, "product"), version=value(captured, "version"), channel=value(captured, "channel"))


def _between(captured: Captured) -> Query | None:
    first, *last = values(captured, "version")
    return Changes(value(captured, "product"), version=last[0] if last else None, after=first)


def _compare(captured: Captured) -> Query | None:
    slugs = _slugs(value(captured, "products"))
    return Compare(slugs) if len(slugs) > 1 else None


def _compare_two(captured: Captured) -> Query | None:
    return Compare(tuple(values(captured, "product")))


def _check(captured: Captured) -> Query | None:
    told: Values = value(captured, "products")
    if told.joint != "and" and len(_slugs(told)) > 1:
        return None
    return Check(_slugs(told), value(captured, "where"))


def _check_platforms(captured: Captured) -> Query | None:
    on: Values = value(captured, "platforms")
    return Check((value(captured, "product"),), on.condition)


def _check_channels(captured: Captured) -> Query | None:
    told: Values = value(captured, "channels")
    return Check((value(captured, "product"),), told.condition)


def _check_by(captured: Captured) -> Query | None:
    return Check((value(captured, "product"),), By(value(captured, "org")))


def _about(aspect: Any) -> Any:
    return lambda captured: About(value(captured, "product"), aspect)


def _aspect(captured: Captured) -> Query | None:
    return About(value(captured, "product"), value(captured, "aspect"))


def _any_release(captured: Captured) -> Query | None:
    return Check((value(captured, "product"),), Released())


_WHAT = "(what is|what was|what are|which is|what|which|show|show me|tell me|give me|tell me about|find|name)"
_V = "[version|release|build|v]"
_NEWEST_TAIL = (
    "[available|out|{here}] [(on|for|in) [the] {platform}|(in|on|from) [the] {channel} [channel]] [is|{here}]"
)
_NEWEST_OF = (
    "[the] {newest} [and greatest] [{channel}] [{platform}] ({one_release}|release number|version number) [number] (of|for|from|in) {product}",
    "[the] [{channel}] {newest} {one_release} (of|for|from|in) {product}",
    "[the] {newest} {channel} (of|for|from) {product}",
    "[the] {newest} {product} [{channel}] ({one_release}|version number)",
    "[the] {newest} {channel} {product} ({one_release}|version number)",
    "[the] {newest} {product} {channel}",
    "{product} 's [{newest}] [{channel}] ({one_release}|version number)",
    "{product} 's {newest} {channel}",
    "{product} {newest} [{channel}] {one_release}",
    "{product} {newest} {channel}",
    "[the] {newest} [{channel}] {one_release} {product} (has|got|had|offers)",
)
_RELEASE_OF = (
    "[the] {product} [version|release|build|v|update] {version}",
    "[the] [version|release|build|update] {version} (of|for|in|from) {product}",
)
_CHANGED = (
    "(what changed|what has changed|what is new|what was new|what is changed|what was changed|what is different|"
    "what changes are|what changes were|what is there new|what is new to see|what was added|what was fixed|what got fixed|"
    "what got added|what got changed|what news are|what is fixed|what is added|what has been changed|what has been added|"
    "what has been fixed|what were the changes|what are the changes|what came|what improved|what happened)"
)
_NOTES = (
    "[what are|what were|what do|what does|show|show me|give me|list|read|read me|tell me|display|find|what is|what was in|"
    "what is in] [the|all] "
    "(release notes|release note|changelog|change log|changes|notes|patch notes|what is new|list of changes)"
)
_DO = "(does|do|did|can|could|will|is|are|was|were|has|have|had|would|should)"
_MADE_IT = "(makes|made|publishes|published|develops|developed|created|creates|released|releases|is behind|wrote|builds|built|owns|maintains|distributes|sells|offers|produced|produces|puts out|ships)"
_RUN = "(run|runs|work|works|play|available|support|supported|running|playable|offered|released|usable|exist|come|published|supports|compatible|target|be played|be used|be run|ship)"

PARTICULARS = (
    *(Form(f"{_WHAT} {each} {_NEWEST_TAIL}", _newest) for each in _NEWEST_OF),
    *(Form(f"{each} {_NEWEST_TAIL}", _newest) for each in _NEWEST_OF),
    Form(f"(what|which) [{{channel}}] {{release}} of {{product}} (is|was) [the] {{newest}} {_NEWEST_TAIL}", _newest),
    Form("(what|which) [{channel}] (version|release|build) (is|was) [the] {newest} (of|for) {product}", _newest),
    Form("(what|which) version is {product} [at|on|in|up to|currently at]", _newest),
    Form("what is {product} at", _newest),
    Form("(what|which) is [the] {newest} {release} {product} (has|got|released|published)", _newest),
    # When
    *(Form(f"when (was|is|were|did|had) {each} [first] ({{out}}|be released)", _when) for each in _RELEASE_OF),
    *(Form(f"when (was|is) {each}", _when) for each in _RELEASE_OF),
    *(Form(f"[what is|what was|tell me|give me|on what day was|on which day was|on which date was] [the] [date|release date|publication date|day] [of|for] {each} [{{out}}]", _when) for each in _RELEASE_OF),
    *(Form(f"(on what day|on which day|on which date|on what date|since when) (was|is|did) {each} [{{out}}]", _when) for each in _RELEASE_OF),
    *(Form(f"when (was|did|is|were) {each} [{{out}}]", _moment) for each in _NEWEST_OF),
    *(Form(f"[what is|what was|tell me|give me] [the] (date|release date|publication date) (of|for) {each}", _moment) for each in _NEWEST_OF),
    Form("when (was|has|did|were|is) {product} [been] (last|most recently) ({out}|updated|update)", _moment),
    Form("when (was|did|has|were) {product} {out} (last|most recently)", _moment),
    Form("when (was|has|did) {product} [been] updated (last|most recently)", _moment),
    Form("when did {product} (last|most recently) (get|have|receive|ship|see|publish|release) [a|an|its|any] [{channel}] ({release}|new {release})", _moment),
    Form("when did {product} (last|most recently) (get|have|receive|ship|see) [a|an|its|any] {channel}", _moment),
    Form("when was [the] last time {product} (was|got|has been) (updated|released)", _moment),
    Form("when was [the] last [{channel}] (release|update|version|build) of {product} [{out}]", _moment),
    Form("when (was|did|has|were) {product} [been] first {out}", _first_moment),
    Form("when (was|did|has|were) {product} {out} [first|for the first time]", _first_moment),
    Form("when did {product} (first get|get) [a|an|its|its first] [first] [{channel}] {release}", _first_moment),
    Form("[what is|what was|tell me|give me] [the] (release date|launch date|publication date) (of|for) {product}", _first_moment),
    Form("[what is|what was] {product} 's (release date|launch date)", _first_moment),
    Form("since when is {product} (available|out)", _first_moment),
    # Changes
    *(Form(f"{_CHANGED} [in|with|by|for|to] {each}", _changes) for each in (*_RELEASE_OF, *_NEWEST_OF)),
    *(Form(f"{_NOTES} [of|for|in|from|to] {each} [say|contain]", _changes) for each in (*_RELEASE_OF, *_NEWEST_OF)),
    *(Form(f"{each} 's (release notes|changelog|changes|notes)", _changes) for each in (*_RELEASE_OF, "{product}")),
    *(Form(f"{_WHAT} {{product}} 's {_V} {{version}} (release notes|changelog|changes|notes)", _changes) for _ in "1"),
    *(Form(f"what (did|does) {each} (change|bring|add|fix|contain|include|introduce|improve|bring along|do|say)", _changes) for each in (*_RELEASE_OF, *_NEWEST_OF)),
    *(Form(f"(show|show me|what are|list) [the] {each} (release notes|changelog|changes|notes)", _changes) for each in _RELEASE_OF),
    *(Form(f"{start} (in|for|to|with|of) {{product}} (between|from) {_V} {{version}} (and|to|until|through) {_V} {{version}}", _between) for start in (_CHANGED, _NOTES)),
    *(Form(f"{start} (between|from) [{{product}}] {_V} {{version}} (and|to|until) {_V} {{version}} [of|in|for] [{{product}}]", _between) for start in (_CHANGED, _NOTES, "[what is|what are] [the] (difference|differences)")),
    *(Form(f"{start} (between|from) {_V} {{version}} (and|to|until) {_V} {{version}} (of|in|for) {{product}}", _between) for start in (_CHANGED, _NOTES)),
    *(Form(f"{start} (in|for|to|with|of) {{product}} (since|after) {_V} {{version}}", _between) for start in (_CHANGED, _NOTES)),
    *(Form(f"{start} (since|after) {{product}} {_V} {{version}}", _between) for start in (_CHANGED, _NOTES)),
    *(Form(f"{start} (since|after) {_V} {{version}} (of|in) {{product}}", _between) for start in (_CHANGED, _NOTES)),
    Form(f"(how does|how do|how is|compare) {{product}} {_V} {{version}} (differ from|different from|compare to|with|and|to) [{{product}}] {_V} {{version}}", lambda captured: None),
    Form(f"{_CHANGED} (in|with|for) {{product}} [lately]", _changes),
    Form(f"{_NOTES} (of|for|in) {{product}}", _changes),
    # Versions
    *(Form(f"(is|was|has|are) {each} [been] [{{out}}|a|an|the|in|on] [{{channel}}] [{{release}}|channel|{{out}}] [{{when}}]", _has_version) for each in _RELEASE_OF),
    *(Form(f"did {each} {{out}} [{{when}}]", _has_version) for each in _RELEASE_OF),
    *(Form(f"(is|was) there {article} {each} [{{out}}]", _has_version) for article in ("[a|an|any]",) for each in _RELEASE_OF),
    Form("(does|did|has) {product} (have|had|got|offer|get) [a|an] [version|release|build] {version} [{release}|{out}]", _has_version),
    Form("(what|which) channel (is|was) {product} [version|release] {version} [in|on|from|{out}]", _when),
    Form("(in|on) (what|which) channel (is|was) {product} [version|release] {version} [{out}]", _when),
    *(Form(f"[is|was] [the] {each} [a] (stable|beta|alpha|nightly) or [a] (stable|beta|alpha|nightly) [{{release}}]", _when) for each in _RELEASE_OF),
    # Compare
    Form("compare {products} [with each other]", _compare),
    Form("compare {product} (with|to|against|versus|vs) {product}", _compare_two),
    Form("{product} (vs|versus|compared to|compared with|against) {product}", _compare_two),
    Form("(how|in what|in which way|in what way) (do|does|are|is) {products} (differ|compare|different)", _compare),
    Form("how (does|is) {product} (compare to|compare with|differ from|different from|different to) {product}", _compare_two),
    Form("(what is|what are|show me|tell me|explain|give me) [the] (difference|differences|comparison|a comparison) (between|of) {products}", _compare),
    Form("(difference|differences|comparison|a comparison) (between|of) {products}", _compare),
    Form("what (distinguishes|separates) {product} from {product}", _compare_two),
    Form("what (distinguishes|separates) {products}", _compare),
    Form("what do {products} have in common", _compare),
    Form("(how|in what way) (is|does) {product} (different|differ) from {product}", _compare_two),
    # About
    Form("is {product} [a|an] {kind} or [a|an] {kind}", _about("kind")),
    Form("what (is|are) {product}", _about("description")),
    Form("(describe|explain|tell me [more|something] about|what can you tell me about|what is known about|info on|information on|information about|info about|what do you know about|show me|show|give me information on|give me information about|details of|details on|tell me all about|tell me about|tell me what|introduce|present) {product} [is]", _about("description")),
    Form("(what is|explain what) {product} [all] about", _about("description")),
    Form("what does {product} do", _about("description")),
    Form("what is {product} (for|good for|used for|made for)", _about("description")),
    Form("what (is|kind of|sort of) [a|an] [kind of|sort of|type of] {thing} is {product}", _about("description")),
    Form("{product}", _about("description")),
    Form(f"who {_MADE_IT} {{product}}", _about("publisher")),
    Form(f"(which|what) {{publishers}} {_MADE_IT} {{product}}", _about("publisher")),
    Form("(who|which {publishers}|what {publishers}|by whom|by who) (is|was) {product} [{made}] [by|from]", _about("publisher")),
    Form("(from|by) (which|what) {publishers} (is|was) {product} [{made}]", _about("publisher")),
    Form("who (is|are|was) [the] (person|people|team|ones|one|{publishers}) behind {product}", _about("publisher")),
    Form("(which|what) {publishers} is behind {product}", _about("publisher")),
    Form("who (is|are|was) [the] {aspect} (of|behind|for) {product}", _aspect),
    Form("who is {product} 's {aspect}", _aspect),
    Form("whose (product|game|app|tool) is {product}", _about("publisher")),
    Form(f"(what|which) [all] [supported] {{aspect}} (does|do|is|are|can|will|has|have|was) {{product}} [{{runs}}|have|has|got|support|supports|use|carry|carries|belong to|under|licensed|tagged|published|come] [with|under|on|for|in|to|{{made}}|{{runs}}] [on|for|in|under]", _aspect),
    Form(f"(on|for|in|under|with) (what|which) {{aspect}} (does|do|is|are|can|has|was|will) [i|you|we] [play|use|run|get] {{product}} [{{runs}}|{{made}}|licensed|tagged|listed|published|released|come|have]", _aspect),
    Form("(what|which) {aspect} (supports|support|run|can run|are supported by|is supported by|apply to|applies to|covers) {product}", _aspect),
    Form(f"{_WHAT} [the|all|all the] [supported|available|software|official] {{aspect}} (of|for|on|behind|supported by|to) {{product}} [is|are]", _aspect),
    Form(f"{_WHAT} {{product}} 's [supported|software|official] {{aspect}}", _aspect),
    Form("[the|all] [supported] {aspect} (of|for) {product}", _aspect),
    Form("{product} ['s] {aspect}", _aspect),
    Form("{aspect} {product}", _aspect),
    Form("(does|has|is) {product} have [a|an|any] (homepage|website|home page|web site)", _about("homepage")),
    Form("(does|has) {product} have [a|an|any] (license|licence)", _about("license")),
    Form(f"what (does|can|do|will|is) {{product}} {_RUN} [on|for|in|with]", _about("platforms")),
    Form("where (does|can|is|do|will) [i|you|we|one] [get|play|use|run|install] {product} [run|runs|work|available|be played|be used|playable|supported]", _about("platforms")),
    Form("where is {product} {runs}", _about("platforms")),
    Form("how is {product} (tagged|categorised|categorized|labelled|labeled|classified)", _about("tags")),
    Form("how is {product} licensed", _about("license")),
    Form("(what|which) is {product} (licensed|released|published|distributed|available|offered) under", _about("license")),
    Form("under (what|which) (terms|conditions) is {product} [{made}|licensed|available]", _about("license")),
    Form("what (is|was) {product} tagged [as|with]", _about("tags")),
    Form("(what|which) (kind|sort|type) of [a|an] [{thing}|thing] is {product}", _about("kind")),
    Form("where (can|do|could) (i|you|we|one) (find|read|learn) [more|out more] [about|on] {product}", _about("homepage")),
    Form("where is {product} 's (homepage|website|home page)", _about("homepage")),
    # Yes or no
    Form(f"{_DO} {{products}} [both|all] {{where}}", _check),
    Form("is it (true|correct|right) that {products} [both|all] {where}", _check),
    Form("(true|correct) that {products} {where}", _check),
    Form("(can|could|may|do|will) (i|you|we|one|people|someone|anyone) (play|run|use|install|get|download|have|start|launch) {product} (on|for|with|under|in|using) {platforms}", _check_platforms),
    Form("(can|could|may|do|will) (i|you|we|one|people|someone|anyone) (play|run|use|install|get|download|have|start|launch) {products} {where}", _check),
    Form("(is|was) there {no} [native] {platforms} (version|build|port|edition|release|client) (of|for) {product}", _check_platforms),
    Form("(is|was) there [a|an|any] {product} [version|build|port|edition|release] (on|for) {platforms}", _check_platforms),
    Form("(is|was|are|were) there [a|an|any] {channels} [release|version|build|channel|releases|versions] (of|for) {product}", _check_channels),
    Form("(is|was|are|were) there [a|an|any] {product} {channel} [release|version|build|channel]", lambda captured: Check((value(captured, "product"),), Released(value(captured, "channel")))),
    Form("(is|are|has|have) there [been] [a|an|any] (release|releases|version|versions) of {product}", _any_release),
    Form("{product} (on|for) {platforms}", _check_platforms),
    Form(f"(did|does|is it) {{org}} [who|that] (make|publish|release|develop|create|own|makes|publishes|made|published) {{product}}", _check_by),
    Form(f"(is|was) {{org}} [the] ({{publishers}}) (of|behind) {{product}}", _check_by),
    Form("(is|was) {org} behind {product}", _check_by),
)  # fmt: skip
