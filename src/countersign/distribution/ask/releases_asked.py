"""The forms of questions about a product's releases: what is newest, when it was published, what changed."""

from typing import Any

from countersign.distribution.ask.clauses import ranged
from countersign.distribution.ask.query import (
    AnyCondition,
    Changes,
    HasVersion,
    Newest,
    On,
    Query,
    WhenReleased,
)
from countersign.distribution.ask.questions import Form
from countersign.distribution.ask.templates import Captured, value, values


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
    )


def _moment(captured: Captured) -> Query | None:
    return Newest(
        value(captured, "product"),
        channel=value(captured, "channel"),
        order=value(captured, "newest", "newest"),
        about="moment",
    )


def _first_moment(captured: Captured) -> Query | None:
    return Newest(
        value(captured, "product"), channel=value(captured, "channel"), order="oldest", about="moment"
    )


def _when(captured: Captured) -> Query | None:
    return WhenReleased(value(captured, "product"), value(captured, "version"))


def _has_version(captured: Captured) -> Query | None:
    return HasVersion(
        value(captured, "product"),
        value(captured, "version"),
        value(captured, "channel"),
        *ranged(value(captured, "when")),
    )


def _changes(captured: Captured) -> Query | None:
    return Changes(
        value(captured, "product"),
        version=value(captured, "version"),
        channel=value(captured, "channel"),
        order=value(captured, "newest", "newest"),
    )


def _between(captured: Captured) -> Query | None:
    first, *last = values(captured, "version")
    return Changes(value(captured, "product"), version=last[0] if last else None, after=first)


_WHAT = "(what is|what was|what are|which is|what|which|show|show me|tell me|give me|tell me about|find|name)"

_V = "[version|release|build|v]"

_NEWEST_TAIL = (
    "[available|out|{here}] [(on|for|in) [the] {platform}|(in|on|from) [the] {channel} [channel]] [is|{here}]"
)

_NEWEST_OF = (
    "[the] {newest} [and greatest] [{channel}] [{platform}] ({one_release}|release number|"
    "version number) [number] (of|for|from|in) {product}",
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
    "[the] {newest} [{channel}] {one_release} to {product}",
    "[the] {newest} [{channel}] {product}",
    "{product} 's {newest}",
    "{product} [{channel}] {newest}",
)
_CHANNEL_OF = ("[the] {product} ['s] {channel} [{one_release}]", "[the] {channel} [{one_release}] (of|for) {product}")

_RELEASE_OF = (
    "[the] {product} [version|release|build|v|update] {version}",
    "[the] [version|release|build|update] {version} (of|for|in|from) {product}",
)

_CHANGED = (
    "(what changed|what has changed|what is new|what was new|what is changed|what was changed|what is different|"
    "which changes came|which changes are|which changes were|which changes come|what changes came|which changes|"
    "which changes did i get|what is part of|what is included|which things changed|what things changed|which fixes are|"
    "what all changed|what was different|what was improved|what has improved|what got better|what got improved|"
    "what do i get|what will i get|what is there|what does one get|what news is there|any news|anything new|"
    "what changes are|what changes were|what is there new|what is new to see|what was added|"
    "what was fixed|what got fixed|"
    "what got added|what got changed|what news are|what is fixed|what is added|what has been "
    "changed|what has been added|"
    "what has been fixed|what were the changes|what are the changes|what came|what improved|what happened)"
)

_NOTES = (
    "[what are|what were|what do|what does|show|show me|give me|list|read|read me|tell me|"
    "display|find|what is|what was in|"
    "what is in] [the|all] "
    ""
    "(release notes|release note|changelog|change log|changes|notes|patch notes|what is new|list of changes|change list|"
    "what changed)"
)

RELEASES_ASKED = (
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
    *(
        Form(
            f"[what is|what was|tell me|give me|on what day was|on which day was|on which date was] "
            f"[the] [date|release date|publication date|day] [of|for] {each} [{{out}}]",
            _when,
        )
        for each in _RELEASE_OF
    ),
    *(
        Form(f"(on what day|on which day|on which date|on what date|since when) (was|is|did) {each} [{{out}}]", _when)
        for each in _RELEASE_OF
    ),
    *(Form(f"when (was|did|is|were) {each} [{{out}}]", _moment) for each in _NEWEST_OF),
    *(
        Form(f"[what is|what was|tell me|give me] [the] (date|release date|publication date) (of|for) {each}", _moment)
        for each in _NEWEST_OF
    ),
    Form("when (was|has|did|were|is) {product} [been] (last|most recently) ({out}|updated|update)", _moment),
    Form("when (was|did|has|were) {product} {out} (last|most recently)", _moment),
    Form("when (was|has|did) {product} [been] updated (last|most recently)", _moment),
    Form(
        "when did {product} (last|most recently) (get|have|receive|ship|see|publish|release) [a|"
        "an|its|any] [{channel}] ({release}|new {release})",
        _moment,
    ),
    Form("when did {product} (last|most recently) (get|have|receive|ship|see) [a|an|its|any] {channel}", _moment),
    Form("when was [the] last time {product} (was|got|has been) (updated|released)", _moment),
    Form("when was [the] last [{channel}] (release|update|version|build) of {product} [{out}]", _moment),
    Form("when (was|did|has|were) {product} [been] first {out}", _first_moment),
    Form("when (was|did|has|were) {product} {out} [first|for the first time]", _first_moment),
    Form("when did {product} (first get|get) [a|an|its|its first] [first] [{channel}] {release}", _first_moment),
    Form(
        "[what is|what was|tell me|give me] [the] (release date|launch date|publication date) (of|for) {product}",
        _first_moment,
    ),
    Form("[what is|what was] {product} 's (release date|launch date)", _first_moment),
    Form("since when is {product} (available|out)", _first_moment),
    *(Form(f"{each} [release|publication] date", _when) for each in _RELEASE_OF),
    *(Form(f"{each} when", _when) for each in _RELEASE_OF),
    *(
        Form(
            f"(in|on|during) (which|what) (year|month|day|week|quarter|date) (was|did|is|were) {each} [{{out}}] [in|on]", _when
        )
        for each in _RELEASE_OF
    ),
    *(Form(f"(what|which) (year|month|day|date) (was|did|is) {each} [{{out}}] [in|on]", _when) for each in _RELEASE_OF),
    *(Form(f"how (long ago|old|recent) (was|is|did) {each} [{{out}}]", _when) for each in _RELEASE_OF),
    *(Form(f"how (old|recent|new|fresh) (is|was) {each}", _moment) for each in _NEWEST_OF),
    *(Form(f"(in|on) (which|what) (year|month|day|date) (was|did|is) {each} [{{out}}]", _moment) for each in _NEWEST_OF),
    *(Form(f"{each} (date|release date|publication date|when)", _moment) for each in _NEWEST_OF),
    Form("how (long ago|recently) (was|has|did) {product} [been] [last] ({out}|updated|update)", _moment),
    Form("how (recent|fresh|up to date) is {product}", _moment),
    Form("when did {product} (last|most recently) (change|update|get updated|come out)", _moment),
    Form("(what is|what was|tell me|give me) [the] date of {product} 's {newest} [{channel}] {one_release}", _moment),
    Form("(in|on) (which|what) (year|month|day|date) (was|did) {product} [first] {out} [first]", _first_moment),
    Form("(what|which) (year|month) (was|did) {product} [first] {out} [first|in]", _first_moment),
    Form("when did {product} (debut|launch|start|first appear|begin)", _first_moment),
    Form("{product} (release date|launch date)", _first_moment),
    Form("(which|what) {product} (is|was) [the] {newest} [{channel}] [one|{one_release}]", _newest),
    Form("(which|what) [{channel}] {one_release} of {product} (came|came out|was released|was published|is|appeared) {newest}", _newest),
    Form("(which|what) [{channel}] {one_release} (does|do|did|has|can) {product} [currently] (have|at|on|offer|reached|reach|ship|got|in)", _newest),
    Form("(which|what) {one_release} (is|was) {product} [{channel}] (at|on|up to|in)", _newest),
    Form("{product} {one_release} [number]", _newest),
    Form("how far (is|has) {product} [got|come]", _newest),
    Form("[{list_head}] [the] version number of [the] {newest} [{channel}] {product} [{one_release}]", _newest),
    # Changes
    *(Form(f"{_CHANGED} [in|with|by|for|to] {each}", _changes) for each in (*_RELEASE_OF, *_NEWEST_OF, *_CHANNEL_OF)),
    *(Form(f"{_NOTES} [of|for|in|from|to] {each} [say|contain]", _changes) for each in (*_RELEASE_OF, *_NEWEST_OF, *_CHANNEL_OF)),
    *(
        Form(f"{each} ['s] [full|complete] (release notes|changelog|changes|notes|change log|patch notes)", _changes)
        for each in (*_RELEASE_OF, *_NEWEST_OF, *_CHANNEL_OF, "{product}")
    ),
    *(
        Form(f"(what is|what was|what were|tell me what is|show me what is|what) [new] (in|inside|within|part of|with) {each} [in it|inside]", _changes)
        for each in (*_RELEASE_OF, *_NEWEST_OF, *_CHANNEL_OF)
    ),
    *(
        Form(
            f"[{{list_head}}] what {each} (changes|changed|brings|brought|adds|added|fixes|fixed|contains|includes|"
            "introduces|introduced|improves|improved|does|did|has|is about) [new]",
            _changes,
        )
        for each in (*_RELEASE_OF, *_NEWEST_OF, *_CHANNEL_OF)
    ),
    *(
        Form(f"{each} (what is in it|what is new|what changed|what is in|what is inside)", _changes)
        for each in (*_RELEASE_OF, *_NEWEST_OF, *_CHANNEL_OF)
    ),
    Form("(release notes|changelog|change log|changes|notes|patch notes|what is new) {product}", _changes),
    *(Form(f"{_WHAT} {{product}} 's {_V} {{version}} (release notes|changelog|changes|notes)", _changes) for _ in "1"),
    *(
        Form(
            f"what (did|does) {each} (change|bring|add|fix|contain|include|introduce|improve|bring along|do|say)",
            _changes,
        )
        for each in (*_RELEASE_OF, *_NEWEST_OF, *_CHANNEL_OF)
    ),
    *(
        Form(f"(show|show me|what are|list) [the] {each} (release notes|changelog|changes|notes)", _changes)
        for each in _RELEASE_OF
    ),
    *(
        Form(
            f"{start} (in|for|to|with|of) {{product}} (between|from) {_V} {{version}} (and|to|until|"
            f"through) {_V} {{version}}",
            _between,
        )
        for start in (_CHANGED, _NOTES)
    ),
    *(
        Form(
            f"{start} (between|from) [{{product}}] {_V} {{version}} (and|to|until) {_V} {{version}} "
            f"[of|in|for] [{{product}}]",
            _between,
        )
        for start in (_CHANGED, _NOTES, "[what is|what are] [the] (difference|differences)")
    ),
    *(
        Form(
            f"{start} (between|from) {_V} {{version}} (and|to|until) {_V} {{version}} (of|in|for) {{product}}", _between
        )
        for start in (_CHANGED, _NOTES)
    ),
    *(
        Form(f"{start} (in|for|to|with|of) {{product}} (since|after) {_V} {{version}}", _between)
        for start in (_CHANGED, _NOTES)
    ),
    *(Form(f"{start} (since|after) {{product}} {_V} {{version}}", _between) for start in (_CHANGED, _NOTES)),
    *(Form(f"{start} (since|after) {_V} {{version}} (of|in) {{product}}", _between) for start in (_CHANGED, _NOTES)),
    Form(
        f"(how does|how do|how is|compare) {{product}} {_V} {{version}} (differ from|different "
        f"from|compare to|with|and|to) [{{product}}] {_V} {{version}}",
        lambda captured: None,
    ),
    Form(f"{_CHANGED} (in|with|for) {{product}} [lately]", _changes),
    Form(f"{_NOTES} (of|for|in) {{product}}", _changes),
    # Versions
    *(
        Form(
            f"(is|was|has|are) {each} [been] [{{out}}|a|an|the|in|on] [{{channel}}] [{{release}}|"
            f"channel|{{out}}] [{{when}}]",
            _has_version,
        )
        for each in _RELEASE_OF
    ),
    *(Form(f"did {each} {{out}} [{{when}}]", _has_version) for each in _RELEASE_OF),
    *(
        Form(f"(is|was) there {article} {each} [{{out}}]", _has_version)
        for article in ("[a|an|any]",)
        for each in _RELEASE_OF
    ),
    Form(
        "(does|did|has) {product} (have|had|got|offer|get) [a|an] [version|release|build] {version} [{release}|{out}]",
        _has_version,
    ),
    Form("(what|which) channel (is|was) {product} [version|release] {version} [in|on|from|{out}]", _when),
    Form("(in|on) (what|which) channel (is|was) {product} [version|release] {version} [{out}]", _when),
    *(
        Form(
            f"[is|was] [the] {each} [a] (stable|beta|alpha|nightly) or [a] (stable|beta|alpha|nightly) [{{release}}]",
            _when,
        )
        for each in _RELEASE_OF
    ),
)
