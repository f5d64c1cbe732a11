"""What can be said of products, one phrase at a time, and the condition each phrase means."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from countersign.distribution.ask.dates import Range
from countersign.distribution.ask.templates import Captured, Reading, value, values
from countersign.distribution.ask.told import (
    ANYTHING,
    AnyCondition,
    Either,
    Every,
    Free,
    Licensed,
    Mentioning,
    Not,
    OfKind,
    On,
    OnlyChannel,
    OnlyOn,
    Released,
    StartingWith,
    Titled,
    every,
    opposite,
)
from countersign.distribution.ask.values import Values, signed
from countersign.distribution.ask.wordlists import ALL_PLATFORMS
from countersign.kernel import clock

Builder = Callable[[Captured, Reading], AnyCondition | None]


@dataclass(frozen=True, slots=True)
class Clause:
    """A way to say something of products; the builder answers None where it cannot mean that."""

    template: str
    build: Builder


def of(slot: str) -> Builder:
    """A builder of what the slot says, or of its opposite after a negation."""
    return lambda captured, reading: signed(
        value(captured, slot), reading, *values(captured, "neg"), *values(captured, "no")
    )


def so(condition: AnyCondition) -> Builder:
    """A builder of a condition without values."""
    return lambda captured, reading: signed(
        Values(condition, ""), reading, *values(captured, "neg"), *values(captured, "no")
    )


def ranged(told: Range | None) -> tuple[str | None, str | None]:
    """The range as the typed query writes it: since, until."""
    if told is None:
        return None, None
    since, until = (None if moment is None else clock.rfc3339(moment) for moment in told)
    return since, until


def within(condition: AnyCondition, told: Range | None, *, first: bool = False) -> AnyCondition:
    """The condition with all its releases in the range."""
    if isinstance(condition, Every | Either):
        return msgspec.structs.replace(condition, of=tuple(within(each, told, first=first) for each in condition.of))
    if isinstance(condition, Not):
        return Not(within(condition.of, told, first=first))
    if isinstance(condition, Released):
        since, until = ranged(told)
        return Released(condition.channel, since, until, first=first)
    return condition


def _released(captured: Captured, reading: Reading) -> AnyCondition | None:
    told: Values = value(captured, "channels") or Values(Released(), "")
    ranged_too = Values(within(told.condition, value(captured, "when")), told.joint)
    return signed(ranged_too, reading, *values(captured, "neg"), *values(captured, "no"))


def _at_times(captured: Captured, reading: Reading) -> AnyCondition | None:
    """Released in each of several periods, in one of them, or in the one but not in the other."""
    told: Values = value(captured, "times")
    return signed(told, reading, *values(captured, "neg")) if told.joint else None


def _not_released(captured: Captured, reading: Reading) -> AnyCondition | None:
    told = _released(captured, reading)
    return None if told is None else opposite(told)


def _has_release(captured: Captured, reading: Reading) -> AnyCondition | None:
    """None where "releases" stands alone: then releases are asked for, not products."""
    is_said = value(captured, "with") or value(captured, "no")
    return _released(captured, reading) if is_said else None


def _has_license(captured: Captured, reading: Reading) -> AnyCondition | None:
    """None where "licences" stands alone: then they are asked for themselves."""
    if not (value(captured, "with") or value(captured, "no")):
        return None
    told = Values(Not(Licensed(None)), "")
    return signed(told, reading, *values(captured, "neg"), *values(captured, "no"))


def _debuted(captured: Captured, reading: Reading) -> AnyCondition | None:
    told = within(Released(), value(captured, "when"), first=True)
    return signed(Values(told, ""), reading, *values(captured, "neg"))


def _last_updated(captured: Captured, reading: Reading) -> AnyCondition | None:
    told: Range = value(captured, "when")
    late = [Not(within(Released(), Range(told.until, None)))] if told.until is not None else []
    return signed(Values(every([within(Released(), told), *late]), ""), reading, *values(captured, "neg"))


def only_on(told: Values) -> AnyCondition | None:
    """On these platforms, each of them, and on no other; None where it cannot mean that."""
    held = told.condition.of if isinstance(told.condition, Every | Either) else (told.condition,)
    named = [each.value for each in held if isinstance(each, On)]
    if len(named) != len(held) or told.joint == "or":
        return None
    return OnlyOn(tuple(each for each in ALL_PLATFORMS if each in named))


def _running(captured: Captured, reading: Reading) -> AnyCondition | None:
    """On the platforms; what is played on them is a game."""
    told = signed(value(captured, "platforms"), reading, *values(captured, "neg"))
    return every([OfKind("game"), told]) if told is not None and value(captured, "runs") == "play" else told


def _only_on(captured: Captured, reading: Reading) -> AnyCondition | None:
    only = only_on(value(captured, "platforms"))
    return None if only is None else signed(Values(only, ""), reading, *values(captured, "neg"))


def _only_channel(captured: Captured, reading: Reading) -> AnyCondition | None:
    return signed(Values(OnlyChannel(value(captured, "channel")), ""), reading, *values(captured, "neg"))


def _titled(captured: Captured, reading: Reading) -> AnyCondition | None:
    return signed(Values(Titled(value(captured, "topic")), ""), reading, *values(captured, "neg"))


def _mentioning(captured: Captured, reading: Reading) -> AnyCondition | None:
    return signed(Values(Mentioning(value(captured, "topic")), ""), reading, *values(captured, "neg"))


def _starting(captured: Captured, reading: Reading) -> AnyCondition | None:
    told = StartingWith(" ".join(value(captured, "topic")))
    return signed(Values(told, ""), reading, *values(captured, "neg"))


def _org_released(captured: Captured, reading: Reading) -> AnyCondition | None:
    by: Values = value(captured, "orgs")
    if value(captured, "when") is None:
        return signed(by, reading, *values(captured, "neg"))
    return every([by.condition, within(Released(), value(captured, "when"))]) if not value(captured, "neg") else None


_ALL = every([On(each) for each in ALL_PLATFORMS])
_WHOSE = "(whose (title|name|titles|names)|with (a|the) (title|name) that|with titles that|with names that)"
_INSIDE = "in [the|its|their|a] (title|titles|name|names)"
_LICENSE = "(license|licence|licenses|licences)"

CLAUSES = (
    Clause("{neg} {runs} only [{on}] {platforms}", _only_on),
    Clause("{neg} only {runs} [{on}] {platforms}", _only_on),
    Clause("{neg} [{runs}] (only|exclusively|solely) [{runs}] [{on}] {platforms}", _only_on),
    Clause("{neg} [{runs}] [{on}] exactly {platforms}", _only_on),
    Clause("{neg} only support {platforms}", _only_on),
    Clause("{neg} {with} {platforms} as (their|its|the) only (platform|system|operating system)", _only_on),
    Clause("{neg} {channel} only", _only_channel),
    Clause("{neg} (exist|exists|available) only (as|in) [a|the] {channel} [{release}]", _only_channel),
    Clause("{neg} only supports {platforms}", _only_on),
    Clause("{neg} (exclusive|exclusively available) (to|on|for) {platforms}", _only_on),
    Clause("{neg} [{runs}] [{on}] {platforms} (only|exclusively|alone|exclusive|exclusives)", _only_on),
    Clause(
        "{neg} [{runs}] [{on}] {platforms} and (nothing|nowhere|no other platform|on nothing|on "
        "no other platform) [else]",
        _only_on,
    ),
    Clause(
        "{neg} {runs} {on} [just|only|exactly|precisely] (one|a single|just one|only one) [single] (platform|system|"
        "operating system)",
        so(Either(tuple(OnlyOn((each,)) for each in ALL_PLATFORMS))),
    ),
    Clause(
        "{neg} (made it|make it|come|came|ported|been ported|gone|gotten|got|get|arrived|arrive|appeared|moved|"
        "brought|been brought|make their way|made their way|made its way) (to|on|onto) {platforms}",
        of("platforms"),
    ),
    Clause("{neg} [{runs}] [{on}] (nothing but|no platform but|no other platform than) {platforms}", _only_on),
    Clause(
        "{neg} {runs} {on} (all|every|each|all of the|all six|all the) [supported|available] (platforms|platform)",
        so(_ALL),
    ),
    Clause(
        "{neg} (support|supports|supporting) (all|every|each|all six|all the) [supported|"
        "available] (platforms|platform)",
        so(_ALL),
    ),
    Clause("{neg} [{on}] (all|every) (platforms|platform)", so(_ALL)),
    Clause("{neg} {runs} [{on}] {platforms}", _running),
    Clause("{neg} {runs} (everywhere|anywhere|on everything)", so(_ALL)),
    Clause("{neg} (get|have|obtain|use|download|be had|had|gotten|try|{runs}) {free}", so(Free())),
    Clause(
        "{neg} (skip|skips|skipping|unavailable on|unavailable for|missing on|missing from|absent from|absent on|"
        "ignore|ignores|leave out|leaves out|lacking on|exclude|excludes) {platforms}",
        lambda captured, reading: signed(value(captured, "platforms"), reading, True, *values(captured, "neg")),
    ),
    Clause(
        "[{with}] (none|nothing|not one|not any|nothing new|no news|no update|no updates|nothing published|nothing "
        "released|no new release|no new version) [released|published|to show|happening] {when}",
        _not_released,
    ),
    Clause(
        "{neg} (touched|refreshed|renewed|changed|maintained|revised|worked on|given an update|given a release|"
        "something new|anything new|get something new|got something new|gotten something new|seen anything new|"
        "see anything new|get anything new|had anything new|a new update|active) {when}",
        _released,
    ),
    Clause("(from|of) {when}", _released),
    Clause("{neg} (test|try|beta test|tried|tested|be tried|be tested) [out] [in|as|on] [a|the] {channels} "
           "[{release}|channel]", _released),
    Clause("{neg} (beta test|beta testing)", so(Released("beta"))),
    Clause(
        "{neg} (only|exclusively|just) (in|on|as|available in|out in|available as) [the|a|an] {channel} [channel]",
        _only_channel,
    ),
    Clause("{neg} (support|supports|supporting|target|targets|targeting|supported on) {platforms}", of("platforms")),
    Clause("{neg} {on} {platforms}", of("platforms")),
    Clause("{neg} compatible with {platforms}", of("platforms")),
    Clause("{neg} {platforms} (compatible|based|friendly)", of("platforms")),
    Clause("{neg} {platforms} (users|people|owners|gamers|players) [{neg} {runs}]", of("platforms")),
    Clause("{neg} [{runs}] (for|by) {platforms} (users|people|owners|gamers|players)", of("platforms")),
    Clause(
        "{neg} [{with}] {no} [native] {platforms} (version|versions|port|ports|build|builds|"
        "edition|editions|client|support|release|releases)",
        of("platforms"),
    ),
    Clause("{neg} {made} (by|from) [either] {orgs}", of("orgs")),
    Clause(
        "{neg} [{made}] (by|from|of) [a|an|any] (someone|anyone|somebody|anybody|others|everyone|everybody|another "
        "{publishers}|{publishers}|other {publishers}|all {publishers}|people|somebody else|someone else|anyone else) "
        "(other than|but|except|besides|apart from|not|different from|outside|outside of|except for|than|but not) "
        "{orgs}",
        lambda captured, reading: signed(value(captured, "orgs"), reading, True, *values(captured, "neg")),
    ),
    Clause(
        "{neg} [{made}] (by|from|of) (other {publishers}|others) than {orgs}",
        lambda captured, reading: signed(value(captured, "orgs"), reading, True, *values(captured, "neg")),
    ),
    Clause(
        "{neg} {orgs} {neg} {makes} (no|none)",
        lambda captured, reading: signed(value(captured, "orgs"), reading, True, *values(captured, "neg")),
    ),
    Clause("{neg} [one|part|some] of {orgs} ['s] ({thing}|catalog|catalogue|line|range)", of("orgs")),
    Clause("{neg} (by|from|of|belonging to|belongs to|belong to|owned by) {orgs}", of("orgs")),
    Clause("{neg} {orgs} {neg} {makes} [{when}]", _org_released),
    Clause("{neg} [a|an] {orgs} ['s] (product|products)", of("orgs")),
    Clause(
        "{neg} (tagged|labelled|labeled|marked|categorised|categorized|classified|filed) [as|"
        "with|under] [the tag|the tags] {tags}",
        of("tags"),
    ),
    Clause("{neg} {with} {no} [the] (tag|tags|label|labels|keyword) {tags}", of("tags")),
    Clause("{neg} {with} {no} {tags} (tag|tags|label)", of("tags")),
    Clause(
        "{neg} (carry|carries|carrying|bear|bears|bearing|use|using|with|have|has) both [the] (tag|tags|labels) {tags}",
        of("tags"),
    ),
    Clause("{neg} (carry|carries|carrying|bear|bearing|use|using) [the] (tag|tags|label) {tags}", of("tags")),
    Clause("{neg} (carry|carries|carrying) [the] {tags} (tag|tags|label)", of("tags")),
    Clause("{neg} for {tags}", of("tags")),
    Clause(
        "{neg} (have|has|having|with) (nothing|nothing whatsoever|nothing at all) to do with {tags}",
        lambda captured, reading: signed(value(captured, "tags"), reading, True, *values(captured, "neg")),
    ),
    Clause(
        "{neg} (about|to do with|have to do with|has to do with|related to|deal with|deals with|dealing with|handle|"
        "handles|handling|cover|covers|covering|concern|concerns|concerned with|help with|helps with|made for|"
        "meant for|"
        "intended for|suited to|suitable for) {tags}", of("tags")),
    Clause("{neg} in [the] (category|genre|tag) {tags}", of("tags")),
    Clause("{neg} in [the] {tags} (category|genre|tag|categories|genres)", of("tags")),
    Clause("{neg} {free}", so(Free())),
    Clause("{neg} {paid}", so(Not(Free()))),
    Clause(
        "{neg} (licensed|released|published|available|distributed|offered|shipped|made "
        "available) (under|with|as) [a|an|the|either] {licenses}",
        of("licenses"),
    ),
    Clause("{neg} under [a|an|the|either] {licenses}", of("licenses")),
    Clause("{neg} {licenses} licensed", of("licenses")),
    Clause("{neg} (licensed|licenced) [as] {licenses}", of("licenses")),
    Clause("{neg} {with} {no} [the] {licenses}", of("licenses")),
    Clause("{neg} (use|uses|using|carry|carries) [a|an|the] {licenses}", of("licenses")),
    Clause(f"{{neg}} {{with}} [the] {_LICENSE} {{licenses}}", of("licenses")),
    Clause("{neg} {licenses}", of("licenses")),
    Clause(
        f"{{neg}} {{with}} {{no}} [stated|known] {_LICENSE} [at all]",
        _has_license,
    ),
    Clause("{neg} [{with}] {no} {channels} {release} [{out}] {when}", _released),
    Clause(
        "{neg} [{with}] {no} {release} [{out}] (in|on|from) [the] {channels} [channel|channels] [{when}]", _released
    ),
    Clause("{neg} (only|exclusively) [{with}] {channel} [{release}]", _only_channel),
    Clause("{neg} [{with}] {channel} {release} only", _only_channel),
    Clause("{neg} [{with}] (only|nothing but|no other than|just) {channel} {release}", _only_channel),
    Clause(
        "{neg} [only|just] [{with}] {channel} [{release}] [,] [and] (no other|nothing else|no others|nothing more|"
        "no further|none other) [kind|kinds|type|types|sort|sorts] [of] [{release}]",
        _only_channel,
    ),
    Clause(
        "{neg} (reached|reach|reaches|hit|hits|got to|get to|gotten to|gone|went|gone to|made it to|make it to|"
        "made it into|make it into|arrived at|left testing for|attained|entered|enter|been in|been through|gone "
        "through|went through|seen) [a|the] {channels} [channel|{release}|stage|status|state]",
        _released,
    ),
    Clause("{neg} [{with}] {no} {channels} {release}", _released),
    Clause("{neg} {with} {no} {channels} [{when}]", _released),
    Clause(
        "{neg} (available|released|published|out|offered|shipped|{runs}) (in|on|as|from|to|via) "
        "[a|an|the] {channels} [channel|channels|release|releases|build|builds] [{when}]",
        _released,
    ),
    Clause("{neg} [both|{out} both|{runs} both] (in|on|as) [the] {channels} [channel|channels] [{when}]", _released),
    Clause(
        "{neg} [still] (yet to|have yet to|has yet to|had yet to|waiting to|waits to|wait to) (see|get|have|receive|"
        "publish|ship|make|reach|put out|be given) [its|their|a|an|any|the] [very] [first] [{channels}] {release} "
        "[ever]",
        lambda captured, reading: _not_released(captured, reading),
    ),
    Clause(
        "{neg} [still] (waiting for|awaiting|await|awaits|wait for|waits for|without|owe us|owes us|lack|lacks|miss|"
        "misses|short of|in want of) [its|their|a|an|any|the] [very] [first] {channels} [{release}]",
        lambda captured, reading: _not_released(captured, reading),
    ),
    Clause(
        "{neg} [still] (waiting for|awaiting|await|awaits|wait for|waits for) [its|their|a|an|any|the] [very] [first] "
        "{release}",
        lambda captured, reading: _not_released(captured, reading),
    ),
    Clause("{neg} {channels} {updated} {when}", _released),
    Clause("{neg} [with|{with}] [{updated}|{release}] {times}", _at_times),
    Clause("{neg} {debuted} {when}", _debuted),
    Clause("{neg} {last_updated} {when}", _last_updated),
    Clause("{neg} [{with}] {no} [new] {release} [{out}] {when}", _released),
    Clause("{neg} [with] {updated} {when}", _released),
    Clause("{neg} {with} {no} (published|public) {release}", _released),
    Clause("{neg} {with} {no} {release} [at all]", _has_release),
    Clause("{neg} (released|published|come out|came out|been released) [at all]", _released),
    Clause("{neg} [a|an] {kinds}", of("kinds")),
    Clause("{neg} (called|named|titled) {topic}", _titled),
    Clause(f"{{neg}} {{with}} [the word|the words] {{topic}} {_INSIDE}", _titled),
    Clause(
        f"{_WHOSE} {{neg}} (contains|contain|containing|includes|include|has|have|mentions|"
        f"mention) [the word|the words] {{topic}}",
        _titled,
    ),
    Clause(
        f"{{neg}} (containing|contain|contains|including|include|mentioning|mention) [the word|"
        f"the words] {{topic}} {_INSIDE}",
        _titled,
    ),
    Clause(
        f"{_WHOSE} {{neg}} (starts|begins|start|begin) with [the letter|the letters|the word|an|a] {{topic}}", _starting
    ),
    Clause(
        "{neg} (start|starts|starting|begin|begins|beginning) with [the letter|the letters|the word] {topic}", _starting
    ),
    Clause(
        "{neg} (about|matching|match|mentioning|mention|mentions|related to|concerning|dealing "
        "with|on the topic of|to do with) {topic}",
        _mentioning,
    ),
    Clause("{neg} {tags}", of("tags")),
    # As people type into a search box
    Clause("{neg} {platforms}", of("platforms")),
    Clause("{neg} {channels} [{when}]", _released),
    Clause("{neg} the (product|products) {products}", of("products")),
    Clause("{here}", lambda captured, reading: ANYTHING),
)
