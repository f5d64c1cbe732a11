"""The forms of questions about particular products: compare them, does it run on, who makes it, what is it."""

from collections.abc import Callable

from countersign.distribution.ask.query import About, Aspect, Check, Compare, Query
from countersign.distribution.ask.questions import Form
from countersign.distribution.ask.templates import Captured, value, values
from countersign.distribution.ask.told import ANYTHING, AnyCondition, Either, Every, Named, OnlyOn, Released
from countersign.distribution.ask.values import Values


def slugs(told: Values) -> tuple[str, ...]:
    """The products of a list."""
    condition = told.condition
    held: tuple[AnyCondition, ...] = condition.of if isinstance(condition, Every | Either) else (condition,)
    return tuple(each.value for each in held if isinstance(each, Named))


def _compare(captured: Captured) -> Query | None:
    named = slugs(value(captured, "products"))
    return Compare(named) if len(named) > 1 else None


def _compare_two(captured: Captured) -> Query | None:
    return Compare(tuple(values(captured, "product")))


def check(captured: Captured) -> Query | None:
    """Whether the condition is true of the products; None of "or", which asks which of them."""
    told: Values = value(captured, "products")
    if told.joint != "and" and len(slugs(told)) > 1:
        return None
    where = value(captured, "where")
    if isinstance(where, Either) and any(isinstance(each, OnlyOn) for each in where.of):
        # "In a browser, or only on Linux?" asks which.
        return None
    return Check(slugs(told), where)


def check_platforms(captured: Captured) -> Query | None:
    """Whether the product runs on the platforms."""
    on: Values = value(captured, "platforms")
    return Check((value(captured, "product"),), on.condition)


def check_channels(captured: Captured) -> Query | None:
    """Whether the product has releases in the channels."""
    told: Values = value(captured, "channels")
    return Check((value(captured, "product"),), told.condition)


def _about(aspect: Aspect) -> Callable[[Captured], Query | None]:
    return lambda captured: About(value(captured, "product"), aspect)


def _aspect(captured: Captured) -> Query | None:
    return About(value(captured, "product"), value(captured, "aspect"))


def any_release(captured: Captured) -> Query | None:
    """Whether the product has a release."""
    return Check((value(captured, "product"),), Released())


_WHAT = "(what is|what was|what are|which is|what|which|show|show me|tell me|give me|tell me about|find|name)"

_MADE_IT = (
    "(makes|made|publishes|published|develops|developed|created|creates|released|releases|is "
    "behind|wrote|builds|built|owns|maintains|distributes|sells|offers|produced|produces|"
    "puts out|ships)"
)

_RUN = (
    "(run|runs|work|works|play|available|support|supported|running|playable|offered|released|"
    "usable|exist|come|published|supports|compatible|target|be played|be used|be run|ship)"
)

_SAID_ONCE = "[the|the game|the app|the tool|the product|the program]"

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
    Form("[is|was] {product} [a|an] {kind} or [a|an] {kind}", _about("kind")),
    Form("(what|which) (kind|sort|type) of [a|an] {kind} is {product}", _about("description")),
    Form("(what|which) (category|kind|sort|type) of {thing} is {product}", _about("kind")),
    Form(
        "[in a few words|in one sentence|in a sentence|in short|in brief|who or] what is {product}",
        _about("description"),
    ),
    Form("{product} (is|does) what", _about("description")),
    Form("[let me know|tell me] what {product} (does|is)", _about("description")),
    Form("do you have (information|info|details|anything|something) (on|about) {product}", _about("description")),
    Form("do you know {product}", _about("description")),
    Form("do you (have|list|carry|offer) {product}", lambda captured: Check((value(captured, "product"),), ANYTHING)),
    Form(
        "(what|why) (do|would|should|could|might) (people|i|one|we|you|anyone|someone) use {product} [for]",
        _about("description"),
    ),
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
    Form("{product} (is for what|is good for what|is used for what|does what|is about what)", _about("description")),
    Form("what is {product} (for|good for|used for|made for)", _about("description")),
    Form("what (is|kind of|sort of) [a|an] [kind of|sort of|type of] {thing} is {product}", _about("description")),
    Form("{product}", _about("description")),
    Form(
        "(more|some more|something|anything|info|details|information|facts|news|all|everything|a few words|a bit|"
        "a little|a short description|description|a description|summary|a summary|the description|about|"
        "more information|more info|tell me more|i want to know more|what do you have|what have you got|"
        "what do you know|what can you say|can you say something|say something|what is there to know|"
        "give me a short description|give me a description|give me a summary|give me info|give me details|"
        "give me more info|give me more information|tell me everything|tell us|talk|tell me something|background) "
        "[about|on|of|for|regarding] {product}",
        _about("description"),
    ),
    Form(
        "(describe|could you describe|can you describe|please describe) {product} [to me|for me|briefly]",
        _about("description"),
    ),
    Form(
        "{product} (info|details|information|description|summary|facts|overview|explained|about)", _about("description")
    ),
    Form(
        "(say|tell me|explain|explain to me|tell us) what {product} (is|does|is for|is about) [for|about]",
        _about("description"),
    ),
    Form(
        "(what is|what was) [the] (thing|game|app|tool|product|program|one) (called|named) {product}",
        _about("description"),
    ),
    Form("(explain|introduce|describe) {product} to me", _about("description")),
    Form("what is {product} (supposed to do|meant for|there for|like|exactly)", _about("description")),
    Form("what (can|could|do) (i|you|we|one) do (with|in) {product}", _about("description")),
    Form(f"who {_MADE_IT} {{product}}", _about("publisher")),
    Form(f"(who|whom) [else] (has|have|is|was) [it that] {_MADE_IT} {{product}}", _about("publisher")),
    Form("{product} (is|was) [{made}] (by|from) (whom|who|which {publishers}|what {publishers})", _about("publisher")),
    Form("{product} (by|from|made by) (whom|who)", _about("publisher")),
    Form("(which|what) {publishers} (is|was) responsible for {product}", _about("publisher")),
    Form("who (is|was) responsible for {product}", _about("publisher")),
    Form("(which|what) {publishers} (does|did|do) {product} (come from|belong to)", _about("publisher")),
    Form("(where|who) does {product} come from", _about("publisher")),
    Form("who do we (have to thank|owe) for {product}", _about("publisher")),
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
    Form(
        "whose (product|game|app|tool|work|program|creation|software|title|utility|project|baby|handiwork|"
        "brainchild|invention|doing|product) is "
        "{product}",
        _about("publisher"),
    ),
    Form(
        "who (do|should|can|must|could|may|have) (i|we|you|one) [to] (thank|credit|blame|praise|contact|write to) "
        "(for|about) "
        "{product}",
        _about("publisher"),
    ),
    Form(
        "{product} (comes from|came from|belongs to|is owned by|is the work of|is|was|got|hails from) [{made}] "
        "[by|from] (which|what) {publishers}",
        _about("publisher"),
    ),
    Form("{product} (belongs to|comes from|is the work of) (whom|who)", _about("publisher")),
    Form("{product} (is|was) licensed how", _about("license")),
    Form("{product} (is|was) tagged how", _about("tags")),
    Form(
        "(what|which) [{aspect}] (do|would|does|must|should) (i|we|you|one|someone) (need|have|need to have|own) "
        "[in order] [to|for] [be able to] (run|play|use|install|have|start) {product} [on]",
        _about("platforms"),
    ),
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
    Form(
        "(which|what) {aspect} does {product} (publish in|release in|publish to|publish on|publish through|"
        "appear in|use|release to|ship to|belong to|come in|exist in)",
        _aspect,
    ),
    Form(
        "(can|could|may) (i|you|we|one) (get|try|download|test|use|have|play|grab|install|find|obtain|fetch|run|"
        "try out|get at) [a|an|the|any] {channels} "
        "[release|version|build] (of|for) {product}",
        check_channels,
    ),
    Form(
        "(can|could|may) (i|you|we|one) (get|try|download|test|use|have|play|grab|install|find|obtain|fetch|run|"
        "try out) {product} (in|as) [a|an|the] "
        "{channels} [release|version|build]",
        check_channels,
    ),
    Form("(is|was) {product} (out|released|published|available)", any_release),
    Form(
        "(has|have|was|were|is|are|did) [there] [been] (a|an|any|some|one) {channels} [{release}] (of|for) {product} "
        "[been|ever been] {out}",
        check_channels,
    ),
    Form("{product} (runs|works|is available|is) (on|for) (what|which) [{aspect}]", _about("platforms")),
    Form(
        f"(on|for|in) (what|which) [{{aspect}}] (does|can|do|will|is) [i|you|we|one] {{product}} {_RUN}",
        _about("platforms"),
    ),
    Form(
        "(what|where) (can|do|could) (i|you|we|one) (run|play|use|install|get) {product} (on|with)", _about("platforms")
    ),
    Form(
        "(list|show|name|tell me|give me|show me|what are|which are) [all] [the] {aspect} [that|which] {product} "
        "(supports|runs on|has|is on|is available on|carries|works on|is available for|uses|is under)",
        _aspect,
    ),
    Form(
        "(in|under|with|on|to) (which|what) {aspect} (is|has|was|does|do|are|can|did) {product} [been] "
        "[{runs}|{made}|{out}|filed|tagged|listed|licensed|labelled|categorised|found|belong]",
        _aspect,
    ),
    Form("where is [the] {aspect} of {product}", _aspect),
    Form("does {product} (run|work) (on|under) (what|which) {aspect}", _aspect),
    Form(
        "(which|what) {aspect} {product} (has|runs on|supports|uses|is on|is under|carries|belongs to|comes with)",
        _aspect,
    ),
    Form("{product} , {aspect}", _aspect),
    Form("{product} (is|has|runs on|is under|comes under|uses) (what|which) {aspect}", _aspect),
    Form("is {platforms} (supported|covered) by {product}", check_platforms),
    Form("(do|does|will|would|can) {platforms} (run|support|play|work with) {product}", check_platforms),
    Form("{product} [{runs}] (on|for|in) {platforms} [{runs}]", check_platforms),
    Form("{product} {platforms} [version|port|build|support|edition]", check_platforms),
    Form(
        "(any|no|some) {platforms} (version|port|build|edition|release|support) (of|for|in) {product}", check_platforms
    ),
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
)
