"""The forms of questions about a product's releases: what is newest, when it was published, what changed."""

from typing import Any

from countersign.distribution.ask.clauses import ranged
from countersign.distribution.ask.query import HasVersion, Newest, Query, WhenReleased
from countersign.distribution.ask.questions import Form
from countersign.distribution.ask.templates import Captured, value
from countersign.distribution.ask.told import AnyCondition, On


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
    return Newest(value(captured, "product"), channel=value(captured, "channel"), order="oldest", about="moment")


def _when(captured: Captured) -> Query | None:
    return WhenReleased(value(captured, "product"), value(captured, "version"))


def _has_version(captured: Captured) -> Query | None:
    return HasVersion(
        value(captured, "product"),
        value(captured, "version"),
        value(captured, "channel"),
        *ranged(value(captured, "when")),
    )


WHAT = "(what is|what was|what are|which is|what|which|show|show me|tell me|give me|tell me about|find|name)"

V = "[version|release|build|v]"

_NEWEST_TAIL = (
    "[available|out|{here}] [(on|for|in) [the] {platform}|(in|on|from) [the] {channel} [channel]] [is|{here}]"
)

NEWEST_OF = (
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
CHANNEL_OF = ("[the] {product} ['s] {channel} [{one_release}]", "[the] {channel} [{one_release}] (of|for) {product}")

RELEASE_OF = (
    "[the] {product} [version|release|build|v|update] {version}",
    "[the] [version|release|build|update] {version} (of|for|in|from) {product}",
)

RELEASES_ASKED = (
    *(Form(f"{WHAT} {each} {_NEWEST_TAIL}", _newest) for each in NEWEST_OF),
    *(Form(f"{each} {_NEWEST_TAIL}", _newest) for each in NEWEST_OF),
    Form(f"(what|which) [{{channel}}] {{release}} of {{product}} (is|was) [the] {{newest}} {_NEWEST_TAIL}", _newest),
    Form("(what|which) [{channel}] (version|release|build) (is|was) [the] {newest} (of|for) {product}", _newest),
    Form(
        "(what|which) [{channel}] {one_release} of {product} (is|was) [the] {newest} [{channel}] [one|{one_release}]",
        _newest,
    ),
    Form("(what|which) (version|number|version number|release|build) is {product} [now] [at|on|in|up to|"
        "currently at]", _newest),
    Form("what is {product} at", _newest),
    Form("(what|which) is [the] {newest} {release} {product} (has|got|released|published)", _newest),
    # When
    *(Form(f"when (was|is|were|did|had) {each} [first] ({{out}}|be released)", _when) for each in RELEASE_OF),
    *(Form(f"when (was|is) {each}", _when) for each in RELEASE_OF),
    *(
        Form(
            f"[what is|what was|tell me|give me|on what day was|on which day was|on which date was] "
            f"[the] [date|release date|publication date|day] [of|for] {each} [{{out}}]",
            _when,
        )
        for each in RELEASE_OF
    ),
    *(
        Form(f"(on what day|on which day|on which date|on what date|since when) (was|is|did) {each} [{{out}}]", _when)
        for each in RELEASE_OF
    ),
    *(Form(f"when (was|did|is|were) {each} [{{out}}]", _moment) for each in NEWEST_OF),
    *(Form(f"when (was|did|were|has) {each} [been] {{out}}", _moment) for each in CHANNEL_OF),
    *(
        Form(f"[what is|what was|tell me|give me] [the] (date|release date|publication date) (of|for) {each}", _moment)
        for each in NEWEST_OF
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
    Form(
        "when was [the] last time {product} (saw|had|got|received|shipped|published|made) [a|an|any] [new] "
        "[{channel}] {release}",
        _moment,
    ),
    Form("when was {product} last touched", _moment),
    Form("{product} {channel} ({one_release}|version number) [number]", _newest),
    Form(
        "(which|what) {product} [{one_release}] (should|do|would|can|must) (i|we|you|one) (get|have|use|install|"
        "download|take|run|be on|be using)",
        _newest,
    ),
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
    *(Form(f"{each} [release|publication] date", _when) for each in RELEASE_OF),
    *(Form(f"{each} [was|is] [{{out}}] (when|what day|which day|on what day)", _when) for each in RELEASE_OF),
    *(Form(f"[the] day of (publication|release) of {each}", _when) for each in RELEASE_OF),
    *(
        Form(f"is it (true|right|correct) that {each} [was|is|has] [been] {{out}} [{{when}}]", _has_version)
        for each in RELEASE_OF
    ),
    Form(
        "when did {product} (get|receive|see|ship|have|release|publish) [its|the|a|an] {newest} [{channel}] "
        "{one_release}",
        _moment,
    ),
    Form("when did {product} (get|receive|see|ship|have|release|publish) [its|the|a|an] {newest} {channel}", _moment),
    Form("when was there (last|most recently) [a|an|any] [{channel}] {release} (of|for|to) {product}", _moment),
    Form(
        "(since when|how long) (is|has|was) {product} [been] (out|around|available|published|released|there|new)",
        _first_moment,
    ),
    Form("when was {product} new", _first_moment),
    *(
        Form(
            f"(in|on|during) (which|what) (year|month|day|week|quarter|date) (was|did|is|were) {each} [{{out}}] "
            f"[in|on]",
            _when,
        )
        for each in RELEASE_OF
    ),
    *(Form(f"(what|which) (year|month|day|date) (was|did|is) {each} [{{out}}] [in|on]", _when) for each in RELEASE_OF),
    *(Form(f"how (long ago|old|recent) (was|is|did) {each} [{{out}}]", _when) for each in RELEASE_OF),
    *(Form(f"how (old|recent|new|fresh) (is|was) {each}", _moment) for each in NEWEST_OF),
    *(Form(f"(in|on) (which|what) (year|month|day|date) (was|did|is) {each} [{{out}}]", _moment) for each in NEWEST_OF),
    *(Form(f"{each} (date|release date|publication date|when)", _moment) for each in NEWEST_OF),
    *(Form(f"{each} [is|was|did] {{out}} (when|on what day|on which day|what day)", _moment) for each in NEWEST_OF),
    Form("how (long ago|recently) (was|has|did) {product} [been] [last] ({out}|updated|update)", _moment),
    Form("how (recent|fresh|up to date) is {product}", _moment),
    Form("when did {product} (last|most recently) (change|update|get updated|come out)", _moment),
    Form("(what is|what was|tell me|give me) [the] date of {product} 's {newest} [{channel}] {one_release}", _moment),
    Form("(in|on) (which|what) (year|month|day|date) (was|did) {product} [first] {out} [first]", _first_moment),
    Form("(what|which) (year|month) (was|did) {product} [first] {out} [first|in]", _first_moment),
    Form("when did {product} (debut|launch|start|first appear|begin)", _first_moment),
    Form("{product} (release date|launch date|debut date|debut|first release date|date of debut|initial "
        "release date)", _first_moment),
    Form("(which|what) {product} (is|was) [the] {newest} [{channel}] [one|{one_release}]", _newest),
    Form(
        "(which|what) [{channel}] {one_release} of {product} (came|came out|was released|was published|is|"
        "appeared) {newest}",
        _newest,
    ),
    Form(
        "(which|what) [{channel}] {one_release} (does|do|did|has|can) {product} [currently] (have|at|on|"
        "offer|reached|reach|ship|got|in)",
        _newest,
    ),
    Form("(which|what) {one_release} (is|was) {product} [{channel}] (at|on|up to|in)", _newest),
    Form("{product} {one_release} [number]", _newest),
    Form(
        "[{list_head}] [the] highest [{channel}] {one_release} [number] (of|for) {product}",
        lambda captured: Newest(value(captured, "product"), channel=value(captured, "channel"), by="version"),
    ),
    Form("(what|which) [{channel}] {one_release} of {product} (is|was) (out|available|there) [{here}]", _newest),
    Form("[{list_head}] [the] {newest} [{channel}] [one] (i|you|we|one) can get (of|for) {product}", _newest),
    Form("[{list_head}] [the] {newest} [{channel}] one (of|for|from) {product}", _newest),
    Form(
        "(which|what) [{channel}] {one_release} of {product} (should|do|would|can) (i|we|you|one) (get|have|"
        "use|install|download|take|run)",
        _newest,
    ),
    Form(
        "(which|what) [{channel}] {one_release} did {product} (start|begin|debut) with",
        lambda captured: Newest(value(captured, "product"), channel=value(captured, "channel"), order="oldest"),
    ),
    Form("what is {product} up to", _newest),
    Form("how far (is|has) {product} [got|come]", _newest),
    Form("[{list_head}] [the] version number of [the] {newest} [{channel}] {product} [{one_release}]", _newest),
    Form(
        "(what|which) [{channel}] {one_release} (is|was) (out|available|there|published|live) [{here}] "
        "(of|for|in|from) {product} [{here}]",
        _newest,
    ),
    # Versions
    *(
        Form(
            f"(is|was|has|are) {each} [been] [{{out}}|a|an|the|in|on] [{{channel}}] [{{release}}|"
            f"channel|{{out}}] [{{when}}]",
            _has_version,
        )
        for each in RELEASE_OF
    ),
    *(Form(f"did {each} {{out}} [{{when}}]", _has_version) for each in RELEASE_OF),
    *(Form(f"(does|did) {each} exist", _has_version) for each in RELEASE_OF),
    *(
        Form(f"(is|was) there {article} {each} [{{out}}]", _has_version)
        for article in ("[a|an|any]",)
        for each in RELEASE_OF
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
        for each in RELEASE_OF
    ),
)
