"""The forms of questions whether something is so: of all products of a kind, of the newest release, of two releases."""

from countersign.distribution.ask.clauses import ranged
from countersign.distribution.ask.query import AllAre, Check, Exists, NewestIs, Precedes, Products, Query, Tells
from countersign.distribution.ask.questions import Form
from countersign.distribution.ask.releases_asked import NEWEST_OF
from countersign.distribution.ask.templates import Captured, value, values
from countersign.distribution.ask.things import Things
from countersign.distribution.ask.told import By, Free, Not, every, opposite
from countersign.distribution.ask.values import Values
from countersign.distribution.ask.wordlists import OPEN_SOURCE

_DO = "(is|are|do|does|can|has|have|was|were|did|will)"
_V = "[version|release|build|v]"
_RELEASE = f"[the] {{product}} {_V} {{version}}"
_ADD = (
    "(add|added|adds|bring|brought|brings|introduce|introduced|introduces|fix|fixed|fixes|include|included|includes|"
    "contain|contains|mention|mentions|improve|improved|change|changed|remove|removed|come with|came with|have|has)"
)


def _all_are(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    return AllAre(told.where, value(captured, "where")) if told.is_plain else None


def _newest_is(captured: Captured) -> Query | None:
    channels = values(captured, "channel")
    if len(channels) > 1 or (channels and value(captured, "when")) or value(captured, "platform"):
        return None
    since, until = ranged(value(captured, "when"))
    return NewestIs(value(captured, "product"), None, channels[0], since, until) if channels else None


def _newest_when(captured: Captured) -> Query | None:
    if value(captured, "newest", "newest") != "newest" or value(captured, "platform"):
        return None
    since, until = ranged(value(captured, "when"))
    return NewestIs(value(captured, "product"), value(captured, "channel"), None, since, until)


def _is_order(captured: Captured) -> bool:
    return value(captured, "newest", "newest") == "newest"


def _precedes(captured: Captured) -> Query | None:
    (one, other), (version, than) = values(captured, "product"), values(captured, "version")
    return Precedes((one, other), (version, than))


def _follows(captured: Captured) -> Query | None:
    (one, other), (version, than) = values(captured, "product"), values(captured, "version")
    return Precedes((other, one), (than, version))


def _tells(captured: Captured) -> Query | None:
    return Tells(value(captured, "product"), value(captured, "version"), value(captured, "topic"))


def _is_open(captured: Captured) -> Query | None:
    return Check((value(captured, "product"),), OPEN_SOURCE["open source"])


def _must_pay(captured: Captured) -> Query | None:
    return Check((value(captured, "product"),), Not(Free()))


def _exists_by(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    by: Values = value(captured, "orgs")
    return Exists(Products(every([told.where, by.condition]))) if told.is_plain else None


def _exists_by_others(captured: Captured) -> Query | None:
    told: Things = value(captured, "things")
    by: Values = value(captured, "orgs")
    about = every([told.where, opposite(by.condition), *values(captured, "where")])
    return Exists(Products(about)) if told.is_plain else None


def _check_by(captured: Captured) -> Query | None:
    return Check((value(captured, "product"),), By(value(captured, "org")))


TRUTHS_ASKED = (
    Form(f"{_DO} (all|every|each|all of|all the|each of|every one of|every single|all of the) {{things}} {{where}}",
         _all_are),
    *(
        Form(f"(is|was) {each} [a|an|in|on|still|only|just] [the] [a|an] {{channel}} [channel|{{release}}|one]",
             lambda captured: _newest_is(captured) if _is_order(captured) else None)
        for each in NEWEST_OF
    ),
    *(
        Form(f"(is|was|did) {each} [{{out}}|dated|made|come] [from] {{when}}", _newest_when)
        for each in NEWEST_OF
    ),
    Form(f"(did|was|is|has|were) {_RELEASE} [been] [{{out}}] (before|earlier than|sooner than|older than) {_RELEASE}"
         " [was|did|{out}]", _precedes),
    Form(f"(did|was|is|has|were) {_RELEASE} [been] [{{out}}] (after|later than|more recently than|newer than|"
         f"more recent than) {_RELEASE} [was|did|{{out}}]", _follows),
    Form(f"(did|does|has|is it|was it) {_RELEASE} [that] {_ADD} [a|an|the|any|support for|some] {{topic}}", _tells),
    Form("(is|are) [the] (source|source code|sources|code) (of|for|behind|to) {product} (open|available|public|"
         "published|open to all)", _is_open),
    Form("(is|are) {product} 's (source|source code|sources|code) (open|available|public|published)", _is_open),
    Form("(does|is) {product} (have|has) [an] open (source|sources|source code)", _is_open),
    Form("(is|are) there [a|an|any] (charge|charges|fee|fees|cost|costs|payment|purchase) [to pay|involved] "
         "(for|with|to get|to download|to use|to play) [using|getting|downloading|playing] {product}", _must_pay),
    Form("(do|does|will|would) (you|they|i|we|one) (charge|ask money|want money|take money) for {product}", _must_pay),
    Form("(does|do|did|has|have) {orgs} (do|done|make|have|carry|got|offer) {things} [at all|too|as well]", _exists_by),
    Form("(does|do|did|has|have) (anybody|anyone|somebody|someone|any {publishers}|another {publishers}) [else] (but|"
         "except|other than|besides|apart from|than|outside|not|except for) {orgs} (put|bring|brought|push|pushed) "
         "{things} out {where}", _exists_by_others),
    Form("is it {org} (that|who|which) (does|did|do|made|makes|publishes|published|puts out|put out|ships|maintains|"
         "owns|develops|developed|is behind|wrote|created|sells) {product}", _check_by),
    Form("(does|do|did|has|have) {org} (do|put out|publish|make|made|done|written|write|ship) {product}", _check_by),
)
