"""The forms of questions whether something is true of a product: does it run on, is there a beta, is it by."""

from countersign.distribution.ask.clauses import only_on
from countersign.distribution.ask.particulars import any_release, check, check_channels, check_platforms
from countersign.distribution.ask.query import Check, Query
from countersign.distribution.ask.questions import Form
from countersign.distribution.ask.templates import Captured, value
from countersign.distribution.ask.told import By, Not, Released, is_of_releases

_DO = "(does|do|did|can|could|is|are|was|were|has|have|had|should)"


def _check_timeless(captured: Captured) -> Query | None:
    """What will be released nobody can tell; what a product will run on is what it runs on."""
    told = value(captured, "where")
    return None if is_of_releases(told) else check(captured)


def _check_beyond(captured: Captured) -> Query | None:
    """Whether it runs on more than these."""
    only = only_on(value(captured, "platforms"))
    return None if only is None else Check((value(captured, "product"),), Not(only))


def _check_by(captured: Captured) -> Query | None:
    return Check((value(captured, "product"),), By(value(captured, "org")))


CHECKS_ASKED = (
    Form(
        "(does|is|can|will|do) {product} [also] [{runs}] [on|for|to] (anything|any platform|anywhere|something|other "
        "platforms|any other platform|any system|platforms|any device) (other than|but|besides|except|than|"
        "apart from) {platforms}",
        _check_beyond,
    ),
    Form(
        "(does|did|has|have|will) {product} (have|has|offer|provide|come with|got|come as|exist as) [a|an|any] "
        "[native] {platforms} (app|application|client|program|edition|version|build|port|game|tool)",
        check_platforms,
    ),
    Form(
        "(is|was) there [a|an|any] [native] {platforms} (app|application|client|program|game|tool) (of|for) {product}",
        check_platforms,
    ),
    Form(
        "(is|are|was) there [a|an|any] {channels} {product} [{release}]",
        check_channels,
    ),
    Form(f"{_DO} {{products}} [both|all] {{where}}", check),
    Form("(will|would) {products} [both|all] {where}", _check_timeless),
    Form("is it (true|correct|right) that {products} [both|all] {where}", check),
    Form("(true|correct) that {products} {where}", check),
    Form(
        "(can|could|may|do|will) (i|you|we|one|people|someone|anyone) (play|run|use|install|get|"
        "download|have|start|launch) {product} (on|for|with|under|in|using) {platforms}",
        check_platforms,
    ),
    Form(
        "(can|could|may|do|will) (i|you|we|one|people|someone|anyone) (play|run|use|install|get|"
        "download|have|start|launch) {products} {where}",
        check,
    ),
    Form(
        "(is|was) there {no} [native] {platforms} (version|build|port|edition|release|client) (of|for) {product}",
        check_platforms,
    ),
    Form(
        "(is|was) there [a|an|any] {product} [version|build|port|edition|release] (on|for) {platforms}",
        check_platforms,
    ),
    Form(
        "(is|was|are|were) there [a|an|any] {channels} [release|version|build|channel|releases|"
        "versions] (of|for) {product}",
        check_channels,
    ),
    Form(
        "(is|was|are|were) there [a|an|any] {product} {channel} [release|version|build|channel]",
        lambda captured: Check((value(captured, "product"),), Released(value(captured, "channel"))),
    ),
    Form("(is|are|has|have) there [been] [a|an|any] (release|releases|version|versions) of {product}", any_release),
    Form(
        "(any|got any|some) {channels} [release|version|build|channel|releases|versions|builds] (of|for|"
        "from) {product}",
        check_channels,
    ),
    Form("{product} {neg} {channels} [release|version|build|releases|versions|builds]", check_channels),
    Form(
        "(has|is|did|does|was) {product} [ever|been] (reached|gone|become|turned|hit|reach|left beta for|"
        "left alpha for|"
        "made it to|made it into|got to|come to|out as|out in|out on|moved to|in|into|on|a|marked|seen|had|"
        "go|hit) [a|the] {channels} "
        "[channel|release|version|status|stage|state|build|ones]",
        check_channels,
    ),
    Form(
        "(is|has|did) {product} [come|left|leave|got|gotten] (out of|past|over|beyond|left) (beta|alpha|"
        "testing|early access) [testing]",
        lambda captured: Check((value(captured, "product"),), Released("stable")),
    ),
    Form("(is|was) {product} {channels} [software|release|version|quality]", check_channels),
    Form(
        "(did|does|is it) {org} [who|that] (make|publish|release|develop|create|own|makes|"
        "publishes|made|published) {product}",
        _check_by,
    ),
    Form("(is|was) {org} [the] ({publishers}) (of|behind) {product}", _check_by),
    Form("(is|was) {org} behind {product}", _check_by),
)
