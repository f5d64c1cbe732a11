"""The forms of questions for the most, the fewest, the newest and the oldest of several products."""

from typing import Any

from countersign.distribution.ask.particulars import slugs
from countersign.distribution.ask.query import Compare, CountOf, Most, Products, Query, Releases
from countersign.distribution.ask.questions import Form
from countersign.distribution.ask.templates import Captured, Slot, value
from countersign.distribution.ask.things import Things
from countersign.distribution.ask.told import ANYTHING, By, Either
from countersign.distribution.ask.values import Values
from countersign.distribution.ask.vocabulary import phrases
from countersign.distribution.ask.wordlists import said

_PAIR = 2
"""Products of which one is said to be newer: they are compared."""
SLOTS: dict[str, Slot] = {
    "extreme": phrases(
        said(
            "most|the most|highest number of|the highest number of|largest number of|the largest number of|"
            "greatest number of|the greatest number of|more|a larger number of|maximum number of|biggest number of|"
            "the biggest number of|the maximum number of",
            False,
        )
        | said(
            "fewest|the fewest|least|the least|lowest number of|the lowest number of|smallest number of|"
            "the smallest number of|fewer|less",
            True,
        )
    ),
    "counted": phrases(
        said(
            "platform|platforms|operating systems|systems|different platforms|oses|kinds of devices|devices",
            "platforms",
        )
        | said(
            "release|releases|version|versions|update|updates|builds|published releases|published versions", "releases"
        )
        | said("tag|tags|labels|categories|genres", "tags")
        | said("channels|channel", "channels")
    ),
    "recency": phrases(
        said(
            "newer|newest|the newer|the newest|more recent|the more recent|the most recent|more recently updated|"
            "updated more recently|updated last|updated most recently|most recently updated|latest|the latest|"
            "released last|released more recently|released most recently|more recently released|later|"
            "most recently released|more up to date|fresher|the newer one|updated later|released later|"
            "published more recently|published last|published later|published most recently|last updated|"
            "last released|last published|last to be updated|last to be released|has the newer release|"
            "has the newest release|has the latest release|"
            "has the more recent release|got the last update|got the latest update|had the last update|"
            "had the latest release|had the most recent release|has the most recent release|"
            "got updated more recently|got updated last|came last|was updated last|had a release more recently|"
            "saw the most recent update|saw the latest update|saw the last update|got the most recent update|"
            "had the most recent update|has been updated last|touched last|refreshed last",
            "newest",
        )
        | said(
            "older|oldest|the older|the oldest|less recent|staler|"
            "less recently updated|updated less recently|updated least recently|"
            "longer without an update|longest without an update|updated the longest ago|updated longest ago|"
            "updated longer ago|has gone longer without an update|gone longer without an update|"
            "gone the longest without an update|not been updated for the longest time|untouched the longest",
            "oldest",
        )
        | said(
            "released first|published first|released earlier|came out first|came out earlier|came first|out first|"
            "published earlier|out earlier|first released|debuted first|appeared first|appeared earlier|"
            "launched first|there first|was released first|was out first|came out before|around longer|"
            "been around longer|has been around longer|been out longer|out longer|released before",
            "debut_first",
        )
        | said(
            "came out last|came out later|debuted last|debuted later|appeared later|launched later|launched last|"
            "came out more recently|appeared last|debuted more recently|came later|came out after",
            "debut_last",
        )
    ),
}


def _most(captured: Captured) -> Query | None:
    told: Things | Values | None = value(captured, "things", value(captured, "products"))
    if told is None or value(captured, "counted") == "channels":
        return None
    if isinstance(told, Values):
        if not isinstance(told.condition, Either):
            return None
        told = Things(told.condition)
    if not told.is_plain:
        return None
    return Most(value(captured, "counted"), told.where, value(captured, "channel"), value(captured, "extreme"))


def _most_of_orgs(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    return Most("products", told.where, least=value(captured, "extreme")) if told.is_plain else None


def _more_recent(captured: Captured) -> Query | None:
    """Which was updated last, or came out first; of two the facts of each are told beside it, as they are compared."""
    told: Values = value(captured, "products")
    if not isinstance(told.condition, Either):
        return None
    wanted = Products(told.condition, value(captured, "recency"), 1)
    is_compared = wanted.order in ("newest", "oldest") and len(slugs(told)) == _PAIR
    return Compare(slugs(told), wanted) if is_compared else wanted


def _debut(order: Any) -> Any:
    def build(captured: Captured) -> Query | None:
        told: Things = value(captured, "things")
        return Products(told.where, order, 1) if told.is_plain else None

    return build


def _last_of_org(captured: Captured) -> Query | None:
    by: Values = value(captured, "orgs")
    order = value(captured, "newest", "newest")
    return Releases(by.condition, value(captured, "channel"), order=order, limit=1)


def _order_of_org(captured: Captured) -> Query | None:
    return Products(By(value(captured, "org")), value(captured, "order"), value(captured, "number", 1))


def _one_release(captured: Captured) -> Query | None:
    told: Things | None = value(captured, "things")
    if told is not None and not told.is_plain:
        return None
    where = ANYTHING if told is None else told.where
    channel = value(captured, "channel") or value(captured, "channel_noun")
    return Releases(where, channel, order=value(captured, "newest", "newest"), limit=1)


def _count_of(captured: Captured) -> Query | None:
    of = value(captured, "counted")
    return CountOf(value(captured, "product"), of) if of != "releases" else None


_HAS = (
    "(has|have|had|on|for|with|runs on|run on|is on|are on|supports|support|available on|is available on|are "
    "available on|"
    "works on|work on|got|received|get|gets|is out on|covers|carries|comes in|seen|saw|runs natively on|can be used on|"
    "can be played on|is available for|is for|has seen|has had|has got|is published on|is released on|exists for)"
)
_ONE = "[one|product|thing|of these|of the two|of both|of them|game|app|tool|of the products|of these two]"

EXTREMES_ASKED = (
    Form(
        f"[{{list_head}}] {{things}} [that|which] {_HAS} [the] {{extreme}} [{{channel}}] {{counted}} [{{here}}]", _most
    ),
    Form(
        f"[{{list_head}}] {{things}} [that|which] {_HAS} [the] {{extreme}} {{channel_noun}} [{{here}}]",
        lambda captured: _most((*captured, ("counted", "releases"), ("channel", value(captured, "channel_noun")))),
    ),
    Form(f"(which|what) of [the] {{products}} {_HAS} [the] {{extreme}} [{{channel}}] {{counted}}", _most),
    Form(
        f"(which|what|who) {_ONE} {_HAS} [the] {{extreme}} [{{channel}}] {{counted}} [of|between|out of] {{products}}",
        _most,
    ),
    Form(f"(does|do|is|has) {{products}} {_HAS} [the] {{extreme}} {{counted}}", lambda captured: None),
    Form("(on|for) {extreme} {counted} (is|are|runs) [which|what] {things}", _most),
    Form("(which|what|who) [{publishers}] {neg} {makes} [the] {extreme} {things} [{here}]", _most_of_orgs),
    Form(
        "[{list_head}] [the] {publishers} [that|which|who|with] [{makes}] [the] {extreme} {things} [{here}]",
        _most_of_orgs,
    ),
    Form(
        "whose (list|catalog|catalogue|range|number|collection|selection|choice) of {things} is [the] (longest|largest|"
        "biggest|widest|greatest|highest|fullest|richest)",
        lambda captured: _most_of_orgs((*captured, ("extreme", False))),
    ),
    Form(
        "whose (list|catalog|catalogue|range|number|collection|selection|choice) of {things} is [the] (shortest|"
        "smallest|"
        "narrowest|lowest)",
        lambda captured: _most_of_orgs((*captured, ("extreme", True))),
    ),
    Form("(which|what) of [the] {products} (is|was|has|had|are|were|did|got) [the] {recency}", _more_recent),
    Form("(which|what) of [the] {products} {recency}", _more_recent),
    Form(
        f"(which|what) {_ONE} (is|was|has|had|are|were|got) [the] {{recency}} [of|between|out of] {{products}}",
        _more_recent,
    ),
    Form(f"(which|what) {_ONE} {{recency}} [of|between|out of] {{products}}", _more_recent),
    Form("(is|was) {products} [the] {recency}", lambda captured: _more_recent(captured)),
    Form(
        "{list_head} {things} (was|is|has been|came out|debuted|appeared|got|launched) [the] (first|first ever|"
        "first of all|first of them all|before all others|released first of all|"
        "released before all others|the first to appear|published first of all|"
        "first to come out|released first|published first|out first|very first|released earliest|earliest)",
        _debut("debut_first"),
    ),
    Form(
        "{list_head} {things} (debuted|launched|was launched|appeared|is) (last|most recently|the last to come out)",
        _debut("debut_last"),
    ),
    Form("what (did|has|does|have) {orgs} [just] {makes} (last|most recently|latest)", _last_of_org),
    Form(
        "what (was|is) [the] {newest} (thing|release|update|version|title|product|one|{release}) [that] [by] {orgs} "
        "[has|have] [{makes}|put out]",
        _last_of_org,
    ),
    Form("[{list_head}] [the] {newest} [{channel}] (release|update|build|version) (by|from) {orgs}", _last_of_org),
    Form("[{list_head}] {orgs} 's {newest} [{channel}] (release|update|build|version)", _last_of_org),
    Form("[{list_head}] {org} 's [{number}] {order} [{number}] {thing}", _order_of_org),
    Form(
        "(which|what) [{channel}] {release} (is|was|came out|came) [the] {newest} [{here}|of all|overall]", _one_release
    ),
    Form("[{list_head}] [the] {newest} ({channel_noun}|{channel} [{release}]) [of all|overall|{here}]", _one_release),
    Form("[{list_head}] [the] {newest} [{channel}] {release} (of all|overall|of them all|of everything)", _one_release),
    Form("{list_head} {things} (has|had|got|have) [the] {newest} ({channel} [{release}]|{release})", _one_release),
    # How many
    Form(
        "(on|for|in|under|with) how many [different|supported] {counted} (does|do|is|are|can|has|was|will) "
        "[i|you|we|one] [run|use|play|get] {product} [{runs}|{made}|have|tagged|filed|listed|there] [on]",
        _count_of,
    ),
    Form(
        "how many [different|supported] {counted} (does|do|has|have|is|are|can|did) {product} [{runs}|have|has|got|"
        "support|carry|in|tagged with|there|cover] [on|for|in|with]",
        _count_of,
    ),
    Form("how many [different|supported] {counted} (support|run|can run|are supported by) {product}", _count_of),
    Form("how many [different|supported] {counted} (are there|are|exist) for {product}", _count_of),
    Form(
        "[what is|tell me|give me] [the] (number|count|total) of [different|supported] {counted} (of|for|"
        "that|on which) "
        "{product} [{runs}|has|supports|have] [on]",
        _count_of,
    ),
)
