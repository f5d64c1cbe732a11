"""The forms of questions about sets of products and releases: which, how many, whether there are any."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from countersign.distribution.ask.clauses import ranged, within
from countersign.distribution.ask.query import Count, Exists, Products, Publishers, Query, Releases
from countersign.distribution.ask.templates import Captured, value, values
from countersign.distribution.ask.things import Things
from countersign.distribution.ask.told import ANYTHING, By, Named, OfKind, Released, every, is_of_releases, opposite
from countersign.distribution.ask.values import Values


@dataclass(frozen=True, slots=True)
class Form:
    """A way to ask; the builder answers None where the words cannot mean that."""

    template: str
    build: Callable[[Captured], Query | None]


def _where(captured: Captured) -> Query | None:
    return Products(value(captured, "where"))


def _products(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    more = values(captured, "where")
    return Products(every([told.where, *more]), told.order, told.limit)


def _of_these(captured: Captured) -> Query | None:
    told: Values = value(captured, "products")
    return Products(every([told.condition, value(captured, "where")]))


def _last(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    return Products(told.where, value(captured, "last_by"), 1) if told.is_plain else None


def _count(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    return Count(Products(every([told.where, *values(captured, "where")]))) if told.is_plain else None


def _count_where(captured: Captured) -> Query | None:
    return Count(Products(value(captured, "where")))


def _exists(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    return Exists(Products(every([told.where, *values(captured, "where")]))) if told.is_plain else None


def _exists_by_others(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    by: Values = value(captured, "orgs")
    return Exists(Products(every([told.where, opposite(by.condition)]))) if told.is_plain else None


def _exists_by(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    by: Values = value(captured, "orgs")
    return Exists(Products(every([told.where, by.condition]))) if told.is_plain else None


def _by(captured: Captured) -> Query | None:
    """What came out in a period is releases; without one, what somebody makes is products."""
    if any(values(captured, "neg")):
        return None
    by: Values = value(captured, "orgs")
    when = value(captured, "when")
    return Releases(by.condition, value(captured, "channel"), *ranged(when)) if when else Products(by.condition)


def _exists_of(captured: Captured) -> Query | None:
    by: Values = value(captured, "orgs")
    told: Releases = value(captured, "releases")
    if told.limit is not None:
        return None
    return Exists(msgspec.structs.replace(told, where=every([told.where, by.condition])))


def _games(captured: Captured) -> Query | None:
    return Products(every([OfKind("game"), *values(captured, "where")]))


def _by_exists(captured: Captured) -> Query | None:
    by: Values = value(captured, "orgs")
    return Exists(Releases(by.condition, value(captured, "channel"), *ranged(value(captured, "when"))))


def _released_at_all(captured: Captured) -> Query | None:
    told = _released_when(captured)
    return Exists(told) if isinstance(told, Releases) else None


def _nobody(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    return Publishers(told.where, none=True) if told.is_plain else None


def _releases(captured: Captured) -> Query | None:
    return value(captured, "releases")


def _count_releases(captured: Captured) -> Query | None:
    told: Releases = value(captured, "releases")
    return Count(told) if told.limit is None else None


def _exists_releases(captured: Captured) -> Query | None:
    told: Releases = value(captured, "releases")
    return Exists(told) if told.limit is None else None


def _released_when(captured: Captured) -> Query | None:
    since, until = ranged(value(captured, "when"))
    return Releases(ANYTHING, value(captured, "channel"), since, until)


def _count_of_product(captured: Captured) -> Query | None:
    where = Named(value(captured, "product"))
    return Count(Releases(where, value(captured, "channel"), *ranged(value(captured, "when"))))


def _exists_in_channel(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    channel = value(captured, "channel") or value(captured, "channel_noun")
    is_about = told.is_plain and not is_of_releases(told.where)
    return Exists(Releases(told.where, channel, *ranged(value(captured, "when")))) if is_about else None


def _released_where(captured: Captured) -> Query | None:
    """What came out in a period is releases, of such products where more is said; None where that is about releases."""
    about = every(values(captured, "where"))
    if is_of_releases(about):
        return None
    return Releases(about, value(captured, "channel"), *ranged(value(captured, "when")))


def _publishers(captured: Captured) -> Query | None:
    told: Things | None = value(captured, "things")
    if told is None:
        return Publishers()
    return Publishers(told.where) if told.is_plain else None


def _count_publishers(captured: Captured) -> Query | None:
    told = _publishers(captured)
    return Count(told) if isinstance(told, Publishers) else None


def _org_has(captured: Captured) -> Query | None:
    return Count(Products(By(value(captured, "org"))))


SETS = (
    Form("(any|got any|have you got any|have you any) {releases}", _exists_releases),
    Form("{list_head} {releases}", _releases),
    Form("{releases}", _releases),
    Form("how many {releases}", _count_releases),
    Form(
        "(number of|count|count of|count the|the number of|what is the [total] number of|give me "
        "the number of) {releases}",
        _count_releases,
    ),
    Form("(is there|are there|were there|was there|have there been|has there been) {releases}", _exists_releases),
    Form(
        "what [has|have|all|else] [was|were|got|been|just|is] (shipped|landed|dropped|appeared|released|"
        "published|came out|come out|gone out|went out|arrived|came|come|pushed out|gone live|went live|shipping|"
        "been shipped) {when}",
        _released_when,
    ),
    Form(
        "(what|anything|something) [has|have|was|were|got|is|been] ({out}|landed|arrived|dropped|appeared|came|come|"
        "new|went|shipped|hit|gone|pushed) [out] [in|on|to|into] [the] {channel} [channel] {when}",
        _released_when,
    ),
    Form(
        "what (was|were|got|has been|else was|have been) updated {when}",
        lambda captured: Products(within(Released(), value(captured, "when"))),
    ),
    Form(
        "what (was|were|got|has been|is|came|else was) (released|published|out|new|shipped|put out) {when}",
        _released_when,
    ),
    Form("[list] [the] (updates|news|new stuff|new things) (of|from|in|for|since|during) {when}", _released_when),
    Form(
        "[list] [the] (updates|news|new stuff|new things|what is new|updated|released|published|out) {when}",
        _released_when,
    ),
    Form(
        "(anything|something|everything) (new|released|published|updated|out|that came out|shipped|fresh) {when}",
        _released_when,
    ),
    Form(
        "(everything|all) (that|which) {neg} (released|published|updated|came out|shipped|come out) {when}",
        _released_when,
    ),
    Form("(was|were|is|has|did|have) (anything|something) [been] {out} {when}", _released_at_all),
    Form("(was|were|is|has|did|have) (anything|something) [been] (new|updated) {when}", _released_at_all),
    Form(
        "(has|have|did|does|do) {orgs} {makes} (anything|something|any {channel} {release}|any {release}|"
        "any new {release}|new {release}|a new {release}|a {release}|any updates) [new] {when}",
        _by_exists,
    ),
    Form(
        "(has|have|did|does|do) {orgs} (get|got|see|had|have) (anything|any {release}|any {channel} "
        "{release}|a {release}) [out] {when}",
        _by_exists,
    ),
    *(
        Form(f"what [else|all] [has|have|was|were|got|been|is] [been] {{out}} [new] {each}", _released_where)
        for each in ("{when} {where}", "{where} {when}")
    ),
    Form("{publishers} {makes} no {things}", _nobody),
    Form("{list_head} [of] [the] {publishers} [that|which|who] {neg} {makes} no {things}", _nobody),
    Form(
        "{list_head} [the] {publishers} [that|which|who] [also|all] (support|supports|target|targets|cover|"
        "covers|publish for|"
        "make things for|release for|publish on|develop for) {platforms}",
        lambda captured: Publishers(value(captured, "platforms").condition),
    ),
    Form("{list_head} [the] {publishers} [that|which|who] [has|have] (without|with no|no) {things}", _nobody),
    Form(
        "{list_head} [of] [the|these|your|all] {publishers} [that|which|who] (do|does|did|has|have|are|is) not "
        "{makes} [any] {things}",
        _nobody,
    ),
    Form("who (makes|publishes|has) no {things}", _nobody),
    Form(
        "{list_head} (catalog|catalogue|portfolio|products|line up|lineup|range|output|work|works|titles) "
        "(of|by|from) {orgs}",
        _by,
    ),
    Form("(catalog|catalogue|portfolio|range|output|line up|lineup|works|work) (of|by|from) {orgs}", _by),
    Form(
        "[{list_head}] {orgs} 's (catalog|catalogue|portfolio|range|output|line up|lineup|works|work|stuff|things)", _by
    ),
    Form("{orgs}", _by),
    Form("what (came|comes) out {when}", _released_when),
    Form("what is new {when}", _released_when),
    Form("{list_head} {things} (was|were|is|are|has|has been|have been|had|got) [the] {last_by}", _last),
    Form(
        "(which|what) [one] of [all] [the|your|all|these] {things} (was|were|is|are|has|has been|had|got) [the] "
        "{last_by}",
        _last,
    ),
    Form("(which|what) [one] of [all] [the|your|all|these] {things} {last_by}", _last),
    Form("{list_head} {things} [that|which] {last_by}", _last),
    Form("{list_head} of {products} {where}", _of_these),
    Form("{list_head} [one] of these {where} {products}", _of_these),
    Form(
        "[{list_head}] (everything|anything|all|stuff|things|something) [that|which] [is|was|were|has been|got] {out} "
        "(by|from) {orgs} {when}",
        _by,
    ),
    Form("[{list_head}] (everything|anything|all|stuff|something) [that|which] {orgs} {neg} {makes} {when}", _by),
    Form("[{list_head}] (releases|updates|versions|news) {orgs} {neg} {makes} {when}", _by),
    Form("{orgs} {makes} what {when}", _by),
    Form("{list_head} {things}", _products),
    Form("{things}", _products),
    Form("(what|which) (can|could|may|should|do) (i|we|you|one|people|they|someone) play [{where}]", _games),
    Form("(what|which) (is|are) [there] (playable|to play) [{where}]", _games),
    Form("(has|have|did|does|do) {orgs} {makes} {releases}", _exists_of),
    Form("what [{channel}] [{release}] (does|do|did|has|have) {orgs} {neg} {makes} [{when}]", _by),
    Form("what {where}", _where),
    Form("which {where}", _where),
    Form("what [{channel}] [{release}] (does|do|did|has|have) {orgs} {neg} {makes} [{when}]", _by),
    Form(
        "[the] [full|whole|complete|entire] (history|release history|version history|timeline|release list|past "
        "releases|past versions|the "
        "history) (of|for) {product}",
        lambda captured: Releases(Named(value(captured, "product"))),
    ),
    Form(
        "[{list_head}] {product} ['s] [full|whole|complete|entire] (history|release history|version history|"
        "timeline|release list|past "
        "releases|past versions)",
        lambda captured: Releases(Named(value(captured, "product"))),
    ),
    Form("what (is|are) {made} (by|from) {orgs}", _by),
    Form("[{list_head}] what {orgs} {makes} [{when}]", _by),
    Form(
        "[{list_head}] what [all|else] {orgs} {makes} [{here}] {where}",
        lambda captured: Products(every([value(captured, "orgs").condition, value(captured, "where")])),
    ),
    Form("what is [there] (in|on) {orgs} 's (catalog|catalogue|portfolio|range|list|line up|lineup|shelf|store)", _by),
    Form("what is [there] (in|on) the (catalog|catalogue|portfolio|range|list|lineup) of {orgs}", _by),
    Form("(anything|everything) {where}", _where),
    Form(
        "(how often|how many times) (was|has|is|did|were|have|does) {product} [been] [{channel}] ({updated}|{out}|"
        "update|"
        "get {updated}) {when}",
        _count_of_product,
    ),
    Form(
        "(is|was|were|are|has|have) there [been] [a|an|any|some] ({channel} [{release}]|{channel_noun}) (of|for|from) "
        "[any|some|any of] [the] {things} [{out}] {when}",
        _exists_in_channel,
    ),
    Form(
        "(has|have|did|does|do) {orgs} ({makes}|do|have) {releases} [(for|of|from) (anything|any product|any of their "
        "products|something)]",
        _exists_of,
    ),
    Form("how many {things}", _count),
    Form("how many of [the|your|all] {things} {where}", _count),
    Form("how many {things} of {products}", lambda captured: None),
    Form("how many {where}", _count_where),
    Form("[what is|tell me|give me] [the] [total] (number|count|total) of {things}", _count),
    Form("count [of] {things}", _count),
    Form("how (big|large) is {org} (catalog|catalogue)", _org_has),
    Form("(is|are|were|was) there {things}", _exists),
    Form("(does|do|did) {things} exist", _exists),
    Form("(is|are|was|were) {things} (available|offered|listed|around|out there|on offer|to be had)", _exists),
    Form(
        "(does|do|did|has|have) (anybody|anyone|somebody|someone|any {publishers}|another {publishers}) [else] (but|"
        "except|other than|besides|apart from|than|outside|not) {orgs} {makes} {things}",
        _exists_by_others,
    ),
    Form(
        "(does|do|did|has|have) (anybody|anyone|somebody|someone|any {publishers}) [else] {makes} {things}", _exists
    ),
    Form("both {tags}", lambda captured: Products(value(captured, "tags").condition)),
    Form("{tags}", lambda captured: Products(value(captured, "tags").condition)),
    Form(
        "(do|can|could|have) (you|i|we|one) (have|offer|get|find|download|play|list|know|got|see|"
        "know of|carry) {things}",
        _exists,
    ),
    Form("(have|has) (you|we) (any|some) {things}", _exists),
    Form("(does|do|did|has|have) {orgs} {makes} {things}", _exists_by),
    Form("(does|do|is|are|has|have|did|was|were|can) (any|some) {things}", _exists),
    Form("(does|do|is|are|has|have|did|was|were|can) (any|some) {things} {where}", _exists),
    Form(
        "(has|is|was|did|does|do|were|can) (anything|something|any product|any of them) {where}",
        lambda captured: Exists(Products(value(captured, "where"))),
    ),
    Form("{list_head} [all|all the|the|every] {publishers} [{here}]", _publishers),
    Form("{list_head} [the|of the] {publishers} {makes} {things}", _publishers),
    Form(
        "{list_head} [of] [the|all|all the|all of the|the names of the] {publishers} (of|with|behind) {things}",
        _publishers,
    ),
    Form("who (is behind|are the makers of|are the publishers of|{makes}) {things}", _publishers),
    Form("how many {publishers} {makes} {things}", _count_publishers),
    Form("how many {publishers} (with|of) {things}", _count_publishers),
    Form("how many [different|distinct] {publishers} [{here}]", _count_publishers),
    Form("(what number|what is the number|how large a number) of {things} {where}", _count),
    Form("of [all] [the] {things} how many {where}", _count),
    Form("(number|count) of {things} {where}", _count),
)
