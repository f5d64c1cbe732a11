"""The forms of questions that set products beside each other: the same maker, the same licence, one respect alone."""

from collections.abc import Callable
from typing import Literal

from countersign.distribution.ask.particulars import slugs
from countersign.distribution.ask.query import Beats, Check, Compare, Products, Query, Same
from countersign.distribution.ask.questions import Form
from countersign.distribution.ask.templates import Captured, value, values
from countersign.distribution.ask.things import Things
from countersign.distribution.ask.told import Free, MakerOf, Not, every
from countersign.distribution.ask.told import Named as OneProduct
from countersign.distribution.ask.values import Values

_AGREES = ("publisher", "license", "platforms", "tags", "kind")


def _same(captured: Captured) -> Query | None:
    told: Values | None = value(captured, "products")
    named = slugs(told) if told is not None else tuple(values(captured, "product"))
    aspect = value(captured, "aspect")
    return Same(named, aspect) if len(named) > 1 and aspect in _AGREES else None


def _same_access(captured: Captured) -> Query | None:
    named = slugs(value(captured, "products"))
    return Same(named, "access") if len(named) > 1 else None


def _compare(captured: Captured) -> Query | None:
    named = slugs(value(captured, "products"))
    return Compare(named) if len(named) > 1 else None


def _compare_two(captured: Captured) -> Query | None:
    return Compare(tuple(values(captured, "product")))


def _others(captured: Captured) -> Query | None:
    """What else the maker of a product makes: not that product itself."""
    slug = value(captured, "maker").value
    told: Things | None = value(captured, "things")
    more = [] if told is None else [told.where]
    if told is not None and not told.is_plain:
        return None
    return Products(every([MakerOf(slug), Not(OneProduct(slug)), *more]))


def _made_by(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    return Products(every([value(captured, "maker"), told.where])) if told.is_plain else None


def _differ(captured: Captured) -> Query | None:
    named, aspect = slugs(value(captured, "products")), value(captured, "aspect")
    return Same(named, aspect, differ=True) if len(named) > 1 and aspect in _AGREES else None


def _has_more(captured: Captured) -> Query | None:
    by = value(captured, "counted")
    return Beats(tuple(values(captured, "product")), by, value(captured, "extreme")) if by != "channels" else None


def _is_beyond(by: Literal["updated", "debut"], *, least: bool = False) -> Callable[[Captured], Query | None]:
    def build(captured: Captured) -> Query | None:
        return Beats(tuple(values(captured, "product")), by, least)

    return build


def _of_two(captured: Captured) -> Query | None:
    """Which of them it is true of: "Which is free, Quill or Quill Pro?"."""
    told: Values = value(captured, "products")
    return Products(every([told.condition, value(captured, "where")])) if told.joint == "or" else None


def _must_pay(captured: Captured) -> Query | None:
    return Check((value(captured, "product"),), Not(Free()))


def _is_free(captured: Captured) -> Query | None:
    return Check((value(captured, "product"),), Free())


_BESIDE = (
    "(side by side|next to each other|beside each other|next to one another|compared|in comparison|against each other|"
    "comparison|compared to each other|head to head|together in a table|in a table)"
)
_OF = (
    "[by|from|have|has|having|under|on|run on|running on|runs on|come from|comes from|carry|use|made by|published by|"
    "belong to|support|released under|available on|of|made in|share|shares|with|supported on|licensed under|work on|"
    "products of|made|published|created by|developed by|built by|written by|produced by|done by|put out by|"
    "shipped by|maintained by|owned by|play on|in|had|offered by|available for|for|available under]"
)
_NEED = "(do|does|must|should|would|will|have|has|did|need|can) (i|we|you|one|people|anyone|anybody|someone|everyone)"
_PAY = (
    "(buy|pay for|own|purchase|pay|have bought|have paid for|spend money on|be an owner of|have a "
    "licence for|have a license for)"
)
_BEFORE = (
    "[before|to|first|in order to|so that|if|in order] [i|we|you|one] [can|want to|may|could|am allowed to|get to] "
    "[download|get|use|play|install|run|downloading|using|have] [it|that] [first]"
)

_IS = "(is|was|has|did|does|had|were|do)"
_UPDATED = (
    "[been] [last] [updated|released|published|get updated|had a release|had an update|had a new "
    "release|get a release|get an update]"
)
_LATER = "(more recently|later|more recent|newer|after|more recently updated|fresher|more up to date)"
_SOONER = "(less recently|longer ago|staler|less recently updated)"
_EARLIER = "(earlier|before|sooner|older|first|around longer|out longer|there longer|out earlier|out before)"

LIKENESS_ASKED = (
    Form(
        f"(are|do|is|does|did|were) {{products}} [both] {_OF} [the|a|an] (different|differing|distinct|"
        f"separate|unlike) [set of] {{aspect}}",
        _differ,
    ),
    Form("(do|does|are|is) {products} (differ|different) (in|by|in their|in its) {aspect}", _differ),
    Form(
        f"{_IS} {{product}} [have|had|run on|runs on|run|work on|available on|support|get|got|on|for|carry|"
        f"seen|gotten|received] [been] [available on] {{extreme}} {{counted}} than {{product}} [does|has|is|did]",
        _has_more,
    ),
    Form(
        f"{_IS} {{product}} {_UPDATED} {_LATER} [updated|released] than {{product}} [was|is|did|has been]",
        _is_beyond("updated"),
    ),
    Form(f"{_IS} {{product}} {_UPDATED} after {{product}} [was|is|did|has been]", _is_beyond("updated")),
    Form(
        f"{_IS} {{product}} {_UPDATED} {_SOONER} than {{product}} [was|is|did|has been]",
        _is_beyond("updated", least=True),
    ),
    Form(
        f"{_IS} {{product}} [been] [{{out}}] {_EARLIER} [{{out}}] [than] {{product}} [was|is|did|has been]",
        _is_beyond("debut"),
    ),
    Form("(which|what) [one|{thing}] {where} {products}", _of_two),
    Form(
        f"(do|are|is|does|did|have|were|was|has) {{products}} [both|all] {_OF} [exactly] [the|a|an|one and "
        f"the] (same|identical|common|one|single) [set of] {{aspect}}",
        _same,
    ),
    Form(
        "(do|are|is|does|did|have|were|was) {products} [both|all] (share|sharing) [a|an|the|one|their|all] "
        "[same|common] {aspect}",
        _same,
    ),
    Form(
        f"(is|are|does|do|has|was) {{product}} {_OF} [exactly] [the] same {{aspect}} (as|like) {{product}} "
        f"[does|is|has|runs on]",
        _same,
    ),
    Form("(is|are) [the] {aspect} of {products} [the] (same|identical)", _same),
    Form("(do|does) [the] same {aspect} [{makes}|apply to|cover|support|run|produce] {products}", _same),
    Form("(is|are|was|were) {products} [both|all] {made} by one {aspect}", _same),
    Form("(are|is) {products} [both] (equally free|the same price)", _same_access),
    Form(
        "(do|does|did|have|has|is|are) {maker} [also|too|behind|who|that] {makes} {product} [too|as well|also]",
        lambda captured: Check((value(captured, "product"),), value(captured, "maker")),
    ),
    Form(
        "(is|was|are) {product} [also] [{made}] (by|from|of) {maker} [too|as well|also]",
        lambda captured: Check((value(captured, "product"),), value(captured, "maker")),
    ),
    Form(
        "(is|are|was) {maker} [also] behind {product} [too|as well]",
        lambda captured: Check((value(captured, "product"),), value(captured, "maker")),
    ),
    Form("(is|was) {product} [also] [{made}] (by|from) whoever {makes} {product}", lambda captured: None),
    Form(
        "what (else|other {thing}|other) (does|do|did|has|have|is|are|was) [{made}|made] [by|from] {maker} [{makes}]",
        _others,
    ),
    Form("what (else|other) [{thing}] (does|do|did|has|have) {maker} {makes}", _others),
    Form("(what|which) {things} (have|has|do|does|did) {maker} [got] [{makes}|got]", _made_by),
    Form("[{list_head}] (what|which) {things} {maker} {makes}", _made_by),
    Form("[{list_head}] [all] (other|else|more|further) {things} (by|from|of) {maker}", _others),
    Form("[{list_head}] (which|what) other {things} (does|do|did|has|have) {maker} {makes}", _others),
    # Compare
    Form("compare [the|their] {aspect} (of|for|between) {products}", _compare),
    Form("(how do|how does) [the] {aspect} of {products} (compare|differ)", _compare),
    Form(
        "[{list_head}] [the] {aspect} (of|for) {product} (compared with|compared to|versus|vs|against|next "
        "to|and|and of|in comparison to|in comparison with) [those of|that of|the ones of] {product} "
        "[compared|side by side]",
        _compare_two,
    ),
    Form(f"[{{list_head}}|show|put|set|place|lay] {{products}} {_BESIDE}", _compare),
    Form(
        "(put|set|place|hold|lay|show|show me|stack) {product} (next to|beside|against|alongside|up against) {product}",
        _compare_two,
    ),
    Form("(comparison|compare|comparing|contrast) [of|between|for] {products}", _compare),
    Form("{products} (difference|differences|differ|compare) [please]", _compare),
    Form("(in what|what|how) (do|does|is|are) {products} (differ|different|compare|differ in|different in)", _compare),
    Form("what (sets|tells) {product} (apart from|from) {product} [apart]", _compare_two),
    Form("what (sets|tells) {products} apart", _compare),
    Form("(how is|how are|in what is) {product} (like|unlike|similar to|different to) {product}", _compare_two),
    Form(
        "(how|in what way) (do|does|are|is) {products} (differ|compare|different) [in|in terms of|by|on|for|"
        "with] [their] {aspect}",
        _compare,
    ),
    Form("(difference|differences) (between|of) {products} in {aspect}", _compare),
    Form(
        "(which|what) {aspect} (do|does|are|can|is) [both] {products} [both] (share|have in common|run on|"
        "support|available on|run|have|both have|use|both run on)",
        _compare,
    ),
    Form(
        "(on|for|in|under) (which|what) {aspect} (do|does|are|can|is) [both] {products} [both] (run|"
        "available|work|licensed|published)",
        _compare,
    ),
    Form("[{list_head}] [the] {aspect} of [both] {products}", _compare),
    Form("(what|who) (is|are) [the] {aspect} of {products}", _compare),
    Form(
        "[the] {newest} (versions|version|releases) of {products} (side by side|compared|next to each other)", _compare
    ),
    Form("{products}", _compare),
    # Access
    Form(f"{_NEED} [need to|have to|got to|needs to] {_PAY} {{product}} {_BEFORE}", _must_pay),
    Form(
        f"{_NEED} [need to|have to] pay [money|something|anything] (for|to get|to use|to play|to download) {{product}}",
        _must_pay,
    ),
    Form(
        f"(must|should|does|do|is|has|need) {{product}} [have|need|required] [to] [be] (bought|paid for|"
        f"purchased|owned) {_BEFORE}",
        _must_pay,
    ),
    Form(
        "is {product} (something|a product|a thing|one|a game|an app|a tool) [that] (i|you|one|we) [must|"
        "have to|need to|has to|should|needs to] "
        "(buy|pay for|own|purchase)",
        _must_pay,
    ),
    Form("(is|are) (buying|owning|paying for|purchasing) {product} (necessary|required|needed)", _must_pay),
    Form("is [a] (purchase|payment) (necessary|required|needed) (for|to get|to download) {product}", _must_pay),
    Form(
        "(can|may|could) (anyone|anybody|everyone|everybody|just anyone) (download|get|have|use|play|"
        "install|try) {product} [{free}]",
        _is_free,
    ),
    Form("(is it|is) [possible] (to get|getting|downloading|to download) {product} {free}", _is_free),
    Form("(is|does) [downloading|getting|using|playing] {product} {free}", _is_free),
    Form("{product} [is] {free}", _is_free),
    Form("{product} : {free}", _is_free),
    Form("(free or paid|paid or free|free or not) {product}", lambda captured: _is_free(captured)),
)
