"""The forms of questions about what changed: in a release, since one, between two, in a period."""

from countersign.distribution.ask.clauses import ranged
from countersign.distribution.ask.query import Changes, Query
from countersign.distribution.ask.questions import Form
from countersign.distribution.ask.releases_asked import CHANNEL_OF, NEWEST_OF, RELEASE_OF, WHAT, V
from countersign.distribution.ask.templates import Captured, value, values

BEGINNING = "1970-01-01T00:00:00Z"
"""Earlier than any release."""


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


def _all_changes(captured: Captured) -> Query | None:
    """The notes of every release there is."""
    return Changes(value(captured, "product"), since=BEGINNING)


def _later(captured: Captured) -> Query | None:
    last, first = values(captured, "version")[:2]
    return Changes(value(captured, "product"), version=last, after=first)


def _releases_when(captured: Captured) -> Query | None:
    """What changed in a period: the releases in it, with their notes."""
    since, until = ranged(value(captured, "when"))
    return Changes(value(captured, "product"), since=since, until=until)


_CHANGED = (
    "(what changed|everything that changed|everything that is new|all that changed|everything new|everything that is "
    "changed|anything that changed|all that is new|everything that was added|everything that was changed|what "
    "has changed|what is new|what was new|what is changed|what was changed|what is different|"
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

_WHOLE = (
    "[what are|what is|show|show me|give me|list|read|read me|tell me|display|find|i want|i want to see|i would like] "
    "(all|all the|all of the|every|full|the full|whole|the whole|complete|the complete|entire|the entire)"
)

_NOTES = (
    "[what are|what were|what do|what does|summarise|summarize|sum up|list all|list every|all|every|describe|explain|"
    "what do i read in|what can i read in|show|show me|give me|list|read|read me|tell me|"
    "display|find|what is|what was in|"
    "what is in] [the|all|all the|full|the full|whole|the whole|complete|the complete|entire|the entire|every] "
    "(change|novelties|improvements|fixes|additions|new features|new things|news|highlights|features|change "
    "history|release notes|release note|changelog|change log|changes|notes|patch notes|"
    "what is new|list of changes|change list|"
    "what changed)"
)

_TO = "(and|to|until|up to|through|till)"

_GOING = (
    "going|updating|upgrading|moving|switching|jumping|changing|to go|to update|to upgrade|update|upgrade|move|"
    "switch|go|"
    "jump|updated|upgraded|moved|switched|went"
)
_DID = "(changed|changes|brought|brings|added|adds|did|does|fixed|fixes|improved|introduced|contained|contains|has|had)"

CHANGES_ASKED = (
    *(
        Form(f"{start} [of|for|in] {{product}} [from|between] {V} {{version}} {_TO} {V} {{version}}", _between)
        for start in (_CHANGED, _NOTES)
    ),
    *(
        Form(
            f"{_CHANGED} [in|with|by|for|to] {each} (compared with|compared to|over|versus|vs|since|relative "
            f"to|against|from) "
            f"[{{product}}] {V} {{version}}",
            _later,
        )
        for each in RELEASE_OF
    ),
    *(
        Form(
            f"what (am|are|do|would|will|did) (i|we) (missing|miss|be missing) (in|since|with|from|on|of|by "
            f"staying on) {each}",
            lambda captured: Changes(value(captured, "product"), after=value(captured, "version")),
        )
        for each in RELEASE_OF
    ),
    Form(
        f"what (did|does|has) {{product}} (gain|get|learn|gained|learned|receive|add|introduce|improve|fix|"
        f"change) (with|in|by|from) {V} {{version}}",
        _changes,
    ),
    Form(f"{{product}} {_CHANGED} [from|between] {V} {{version}} {_TO} {V} {{version}}", _between),
    Form(
        f"what (have|did|do|has) (i|we|one) (missed|miss|got|get) (in|of|with|from) {{product}} (since|after) "
        f"{V} {{version}}",
        lambda captured: Changes(value(captured, "product"), after=value(captured, "version")),
    ),
    *(
        Form(
            "(what|which) (bug|bugs|feature|features|problem|problems|thing|things|issue|issues|error|errors|"
            "improvement|improvements|novelty|novelties) [was|were|is|are|has been|have been|got|did|does] (fixed|"
            f"added|improved|introduced|new|changed|solved|there) (in|with|by) {each}",
            _changes,
        )
        for each in (*RELEASE_OF, *NEWEST_OF, *CHANNEL_OF)
    ),
    Form(
        "what (did|does|has|was|is) [the] {newest} [{channel}] {one_release} (add|added|bring|brought|change|changed|"
        "fix|fixed|do|done|improve|improved|new|give) [to|in|for|with|about|by] {product}",
        _changes,
    ),
    *(
        Form(f"{start} {{product}} (in|with|by|as of|through) {V} {{version}}", _changes)
        for start in (
            "(what|which things|what things|what all) (was|were|is|has been|have been|got|did they) [new] (added to|"
            "add to|"
            "fixed in|fix in|changed in|change in|changed about|improved in|new in|introduced to|introduced in|"
            "brought to|"
            "done to|different in|new for|changed for)",
            "(what|everything that|all that) (changed|happened|improved) (in|for|to|with|about)",
        )
    ),
    *(
        Form(
            f"what (do|will|would|did|can|could|shall|might) (i|we|you|one) [{{neg}}] (gain|get|win|have|benefit|"
            f"expect|"
            f"find|see|receive|be getting|notice) [new] [by|when|if|from|on|after|for] [i|we|you|one] [{_GOING}] "
            f"{each}",
            _between,
        )
        for each in (
            f"from {{product}} {V} {{version}} to [{{product}}] {V} {{version}}",
            f"{{product}} from {V} {{version}} to {V} {{version}}",
            f"from {V} {{version}} to {V} {{version}} of {{product}}",
        )
    ),
    *(
        Form(f"[{{list_head}}] what {each} [of {{product}}] {_DID}", _all_changes)
        for each in ("(each|every|every single|each and every) {product} {release}",
                     "(each|every|every single) {release}")
    ),
    Form(
        "what (did|does|has|do) (each|every|each and every|every single) {release} (of|for) {product} "
        "(change|bring|add|fix|improve|introduce|changed|brought|added|fixed|contain|have|do)",
        _all_changes,
    ),
    Form(f"{_CHANGED} [in|with|by] (each|every|each and every|every single) {{release}} (of|for) {{product}}",
         _all_changes),
    Form(
        f"{_WHOLE} (change history|release notes|changelog|change log|changes|notes|patch notes) [of|for|in|from|to] "
        "{product}",
        _all_changes,
    ),
    Form(
        "[{list_head}] [the] {product} ['s] (full|whole|complete|entire) (change history|release notes|changelog|"
        "change log|patch notes)",
        _all_changes,
    ),
    *(Form(f"{_CHANGED} [in|with|by|for|to] {each}", _changes) for each in (*RELEASE_OF, *NEWEST_OF, *CHANNEL_OF)),
    *(
        Form(f"{_NOTES} [of|for|in|from|to|on|about] {each} [say|contain]", _changes)
        for each in (*RELEASE_OF, *NEWEST_OF, *CHANNEL_OF)
    ),
    *(
        Form(f"{each} ['s] [full|complete] (release notes|changelog|changes|notes|change log|patch notes)", _changes)
        for each in (*RELEASE_OF, *NEWEST_OF, *CHANNEL_OF, "{product}")
    ),
    *(
        Form(
            f"(what is|what was|what were|tell me what is|show me what is|what) [new] (in|inside|within|part of|"
            f"with) {each} [in it|inside]",
            _changes,
        )
        for each in (*RELEASE_OF, *NEWEST_OF, *CHANNEL_OF)
    ),
    *(
        Form(
            f"[{{list_head}}] what {each} (changes|changed|brings|brought|adds|added|fixes|fixed|contains|includes|"
            "introduces|introduced|improves|improved|does|did|has|is about) [new]",
            _changes,
        )
        for each in (*RELEASE_OF, *NEWEST_OF, *CHANNEL_OF)
    ),
    *(
        Form(f"{each} (what is in it|what is new|what changed|what is in|what is inside)", _changes)
        for each in (*RELEASE_OF, *NEWEST_OF, *CHANNEL_OF)
    ),
    *(
        Form(
            f"what (do|did|does) [the] (notes|release notes|changelog) (say|tell|contain) [about|of|on|for] {each}",
            _changes,
        )
        for each in (*RELEASE_OF, *NEWEST_OF, *CHANNEL_OF)
    ),
    *(
        Form(
            f"(tell me about|tell me [more|something] about|describe|explain|what is|what was|what is there to "
            f"say about|"
            f"more about|info on|info about|details of|details on|about|summarise|what about) {each} [about]",
            _changes,
        )
        for each in RELEASE_OF
    ),
    *(
        Form(f"{each} (changed|brought|brings|adds|added|fixes|fixed|introduced|contains|changes|did) what", _changes)
        for each in (*RELEASE_OF, *NEWEST_OF)
    ),
    *(
        Form(f"(did|does|has|is|was) {each} (fix|change|add|bring|improve|introduce) (anything|something)", _changes)
        for each in RELEASE_OF
    ),
    *(
        Form(
            f"(what|which) (has been|got|was|were|has|have been|is|are) (fixed|added|changed|improved|introduced|"
            f"new|different|"
            f"removed|done) [in|with|by|for|to|of] {each}",
            _changes,
        )
        for each in (*RELEASE_OF, *NEWEST_OF, *CHANNEL_OF)
    ),
    *(
        Form(
            f"what (did|does|do|will|would) {each} (change|bring|add|fix|contain|include|introduce|improve|give|"
            f"offer|do) "
            "[us|me|you|to the table|along|with it|new|for me]",
            _changes,
        )
        for each in (*RELEASE_OF, *NEWEST_OF, *CHANNEL_OF)
    ),
    *(
        Form(
            f"[{{list_head}}] [the] {start} (between|from) [version|versions|release|releases|{{product}}] {V} "
            f"{{version}} "
            f"(and|to|until|through) [{{product}}] {V} {{version}} [of|in|for] [{{product}}]",
            _between,
        )
        for start in (_CHANGED, _NOTES, "[what is|what are|what were] [the] (difference|differences|changes)")
    ),
    *(
        Form(
            f"[{{list_head}}] (how|in what way|in which way) (does|do|did|is) {each} (differ from|different from|"
            f"compare to|"
            f"compare with|improve on|different to) [{{product}}] {V} {{version}}",
            _later,
        )
        for each in RELEASE_OF
    ),
    Form(
        f"[{{list_head}}] (everything|all|anything) (that|which) [has] [been] (changed|new|happened|added|"
        f"fixed|came) (in|to|with) {{product}} (since|after) {V} {{version}}",
        lambda captured: Changes(value(captured, "product"), after=value(captured, "version")),
    ),
    Form(
        f"what (have|did|do) (i|we) (missed|miss|get) (since|after) {{product}} {V} {{version}}",
        lambda captured: Changes(value(captured, "product"), after=value(captured, "version")),
    ),
    *(Form(f"{start} (in|with|for|to) {{product}} {{when}}", _releases_when) for start in (_CHANGED, _NOTES)),
    Form("(release notes|changelog|change log|changes|notes|patch notes|what is new) {product}", _changes),
    *(Form(f"{WHAT} {{product}} 's {V} {{version}} (release notes|changelog|changes|notes)", _changes) for _ in "1"),
    *(
        Form(
            f"what (did|does) {each} (change|bring|add|fix|contain|include|introduce|improve|bring along|do|say)",
            _changes,
        )
        for each in (*RELEASE_OF, *NEWEST_OF, *CHANNEL_OF)
    ),
    *(
        Form(f"(show|show me|what are|list) [the] {each} (release notes|changelog|changes|notes)", _changes)
        for each in RELEASE_OF
    ),
    *(
        Form(
            f"{start} (in|for|to|with|of) {{product}} (between|from) {V} {{version}} (and|to|until|"
            f"through) {V} {{version}}",
            _between,
        )
        for start in (_CHANGED, _NOTES)
    ),
    *(
        Form(
            f"{start} (between|from) [{{product}}] {V} {{version}} (and|to|until) {V} {{version}} "
            f"[of|in|for] [{{product}}]",
            _between,
        )
        for start in (_CHANGED, _NOTES, "[what is|what are] [the] (difference|differences)")
    ),
    *(
        Form(f"{start} (between|from) {V} {{version}} (and|to|until) {V} {{version}} (of|in|for) {{product}}", _between)
        for start in (_CHANGED, _NOTES)
    ),
    *(
        Form(f"{start} (in|for|to|with|of) {{product}} (since|after) {V} {{version}}", _between)
        for start in (_CHANGED, _NOTES)
    ),
    *(Form(f"{start} (since|after) {{product}} {V} {{version}}", _between) for start in (_CHANGED, _NOTES)),
    *(Form(f"{start} (since|after) {V} {{version}} (of|in) {{product}}", _between) for start in (_CHANGED, _NOTES)),
    Form(
        f"(how does|how do|how is|compare) {{product}} {V} {{version}} (differ from|different "
        f"from|compare to|with|and|to) [{{product}}] {V} {{version}}",
        lambda captured: None,
    ),
    Form(f"{_CHANGED} (in|with|for) {{product}} [lately]", _changes),
    Form(f"{_NOTES} (of|for|in) {{product}}", _changes),
)
