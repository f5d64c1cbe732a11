"""The forms of questions about particular products: compare them, does it run on, who makes it, what is it."""

from collections.abc import Callable

from countersign.distribution.ask.query import (
    About,
    AnyCondition,
    Aspect,
    By,
    Check,
    Compare,
    Either,
    Every,
    Named,
    Query,
    Released,
)
from countersign.distribution.ask.questions import Form
from countersign.distribution.ask.templates import Captured, value, values
from countersign.distribution.ask.values import Values


def _slugs(told: Values) -> tuple[str, ...]:
    """The products of a list."""
    condition = told.condition
    held: tuple[AnyCondition, ...] = condition.of if isinstance(condition, Every | Either) else (condition,)
    return tuple(each.value for each in held if isinstance(each, Named))


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


def _about(aspect: Aspect) -> Callable[[Captured], Query | None]:
    return lambda captured: About(value(captured, "product"), aspect)


def _aspect(captured: Captured) -> Query | None:
    return About(value(captured, "product"), value(captured, "aspect"))


def _any_release(captured: Captured) -> Query | None:
    return Check((value(captured, "product"),), Released())


_WHAT = "(what is|what was|what are|which is|what|which|show|show me|tell me|give me|tell me about|find|name)"

_DO = "(does|do|did|can|could|will|is|are|was|were|has|have|had|would|should)"

_MADE_IT = (
    "(makes|made|publishes|published|develops|developed|created|creates|released|releases|is "
    "behind|wrote|builds|built|owns|maintains|distributes|sells|offers|produced|produces|"
    "puts out|ships)"
)

_RUN = (
    "(run|runs|work|works|play|available|support|supported|running|playable|offered|released|"
    "usable|exist|come|published|supports|compatible|target|be played|be used|be run|ship)"
)

PARTICULARS = (
    Form("compare {products} [with each other]", _compare),
    Form("compare {product} (with|to|against|versus|vs) {product}", _compare_two),
    Form("{product} (vs|versus|compared to|compared with|against) {product}", _compare_two),
    Form("(how|in what|in which way|in what way) (do|does|are|is) {products} (differ|compare|different)", _compare),
    Form(
        "how (does|is) {product} (compare to|compare with|differ from|different from|different to) {product}",
        _compare_two,
    ),
    Form(
        "(what is|what are|show me|tell me|explain|give me) [the] (difference|differences|"
        "comparison|a comparison) (between|of) {products}",
        _compare,
    ),
    Form("(difference|differences|comparison|a comparison) (between|of) {products}", _compare),
    Form("what (distinguishes|separates) {product} from {product}", _compare_two),
    Form("what (distinguishes|separates) {products}", _compare),
    Form("what do {products} have in common", _compare),
    Form("(how|in what way) (is|does) {product} (different|differ) from {product}", _compare_two),
    # About
    Form("is {product} [a|an] {kind} or [a|an] {kind}", _about("kind")),
    Form("what (is|are) {product}", _about("description")),
    Form(
        "(describe|explain|tell me [more|something] about|what can you tell me about|what is "
        "known about|info on|information on|information about|info about|what do you know about|"
        "show me|show|give me information on|give me information about|details of|details on|"
        "tell me all about|tell me about|tell me what|introduce|present) {product} [is]",
        _about("description"),
    ),
    Form("(what is|explain what) {product} [all] about", _about("description")),
    Form("what does {product} do", _about("description")),
    Form("what is {product} (for|good for|used for|made for)", _about("description")),
    Form("what (is|kind of|sort of) [a|an] [kind of|sort of|type of] {thing} is {product}", _about("description")),
    Form("{product}", _about("description")),
    Form(f"who {_MADE_IT} {{product}}", _about("publisher")),
    Form(f"(which|what) {{publishers}} {_MADE_IT} {{product}}", _about("publisher")),
    Form(
        "(who|which {publishers}|what {publishers}|by whom|by who) (is|was) {product} [{made}] [by|from]",
        _about("publisher"),
    ),
    Form("(from|by) (which|what) {publishers} (is|was) {product} [{made}]", _about("publisher")),
    Form("who (is|are|was) [the] (person|people|team|ones|one|{publishers}) behind {product}", _about("publisher")),
    Form("(which|what) {publishers} is behind {product}", _about("publisher")),
    Form("who (is|are|was) [the] {aspect} (of|behind|for) {product}", _aspect),
    Form("who is {product} 's {aspect}", _aspect),
    Form("whose (product|game|app|tool) is {product}", _about("publisher")),
    Form(
        "(what|which) [all] [supported] {aspect} (does|do|is|are|can|will|has|have|was) "
        "{product} [{runs}|have|has|got|support|supports|use|carry|carries|belong to|under|"
        "licensed|tagged|published|come] [with|under|on|for|in|to|{made}|{runs}] [on|for|in|"
        "under]",
        _aspect,
    ),
    Form(
        "(on|for|in|under|with) (what|which) {aspect} (does|do|is|are|can|has|was|will) [i|you|"
        "we] [play|use|run|get] {product} [{runs}|{made}|licensed|tagged|listed|published|"
        "released|come|have]",
        _aspect,
    ),
    Form(
        "(what|which) {aspect} (supports|support|run|can run|are supported by|is supported by|"
        "apply to|applies to|covers) {product}",
        _aspect,
    ),
    Form(
        f"{_WHAT} [the|all|all the] [supported|available|software|official] {{aspect}} (of|for|on|"
        f"behind|supported by|to) {{product}} [is|are]",
        _aspect,
    ),
    Form(f"{_WHAT} {{product}} 's [supported|software|official] {{aspect}}", _aspect),
    Form("[the|all] [supported] {aspect} (of|for) {product}", _aspect),
    Form("{product} ['s] {aspect}", _aspect),
    Form("{aspect} {product}", _aspect),
    Form("(does|has|is) {product} have [a|an|any] (homepage|website|home page|web site)", _about("homepage")),
    Form("(does|has) {product} have [a|an|any] (license|licence)", _about("license")),
    Form(f"what (does|can|do|will|is) {{product}} {_RUN} [on|for|in|with]", _about("platforms")),
    Form(
        "where (does|can|is|do|will) [i|you|we|one] [get|play|use|run|install] {product} [run|"
        "runs|work|available|be played|be used|playable|supported]",
        _about("platforms"),
    ),
    Form("where is {product} {runs}", _about("platforms")),
    Form("how is {product} (tagged|categorised|categorized|labelled|labeled|classified)", _about("tags")),
    Form("how is {product} licensed", _about("license")),
    Form(
        "(what|which) is {product} (licensed|released|published|distributed|available|offered) under", _about("license")
    ),
    Form("under (what|which) (terms|conditions) is {product} [{made}|licensed|available]", _about("license")),
    Form("what (is|was) {product} tagged [as|with]", _about("tags")),
    Form("(what|which) (kind|sort|type) of [a|an] [{thing}|thing] is {product}", _about("kind")),
    Form(
        "where (can|do|could) (i|you|we|one) (find|read|learn) [more|out more] [about|on] {product}", _about("homepage")
    ),
    Form("where is {product} 's (homepage|website|home page)", _about("homepage")),
    # Yes or no
    Form(f"{_DO} {{products}} [both|all] {{where}}", _check),
    Form("is it (true|correct|right) that {products} [both|all] {where}", _check),
    Form("(true|correct) that {products} {where}", _check),
    Form(
        "(can|could|may|do|will) (i|you|we|one|people|someone|anyone) (play|run|use|install|get|"
        "download|have|start|launch) {product} (on|for|with|under|in|using) {platforms}",
        _check_platforms,
    ),
    Form(
        "(can|could|may|do|will) (i|you|we|one|people|someone|anyone) (play|run|use|install|get|"
        "download|have|start|launch) {products} {where}",
        _check,
    ),
    Form(
        "(is|was) there {no} [native] {platforms} (version|build|port|edition|release|client) (of|for) {product}",
        _check_platforms,
    ),
    Form(
        "(is|was) there [a|an|any] {product} [version|build|port|edition|release] (on|for) {platforms}",
        _check_platforms,
    ),
    Form(
        "(is|was|are|were) there [a|an|any] {channels} [release|version|build|channel|releases|"
        "versions] (of|for) {product}",
        _check_channels,
    ),
    Form(
        "(is|was|are|were) there [a|an|any] {product} {channel} [release|version|build|channel]",
        lambda captured: Check((value(captured, "product"),), Released(value(captured, "channel"))),
    ),
    Form("(is|are|has|have) there [been] [a|an|any] (release|releases|version|versions) of {product}", _any_release),
    Form("{product} (on|for) {platforms}", _check_platforms),
    Form(
        "(did|does|is it) {org} [who|that] (make|publish|release|develop|create|own|makes|"
        "publishes|made|published) {product}",
        _check_by,
    ),
    Form("(is|was) {org} [the] ({publishers}) (of|behind) {product}", _check_by),
    Form("(is|was) {org} behind {product}", _check_by),
)
