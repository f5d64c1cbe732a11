"""The typed query in words: what an answer says it is about, in words that mean the same when they are asked."""

from datetime import date, timedelta

from countersign.distribution.ask.query import Products, Publishers, Releases
from countersign.distribution.ask.told import (
    ANYTHING,
    AnyCondition,
    By,
    Either,
    Every,
    Free,
    Licensed,
    MakerOf,
    Mentioning,
    Named,
    Not,
    OfKind,
    On,
    OnlyChannel,
    OnlyOn,
    Released,
    StartingWith,
    Tagged,
    Titled,
    every,
)

NAMES = {"windows": "Windows", "macos": "macOS", "linux": "Linux", "android": "Android", "ios": "iOS", "web": "the web"}
_PLURAL = {"is": "are", "has": "have", "runs": "run", "was": "were", "mentions": "mention", "starts": "start"}
_BASE = {"has": "have", "runs": "run", "mentions": "mention", "starts": "start"}
_MIDNIGHT = "T00:00:00.000Z"


def joined(items: list[str], last: str = "and") -> str:
    """a, b and c."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else ""


def platforms(names: list[str] | tuple[str, ...]) -> str:
    """Platforms as people write them."""
    return joined([NAMES[name] for name in names])


def _said(condition: AnyCondition) -> tuple[str, str]:
    """The verb and what follows it, in the singular."""
    match condition:
        case OfKind(kind):
            return "is", f"{'an' if kind == 'app' else 'a'} {kind}"
        case On(platform):
            return "runs", f"on {NAMES[platform]}"
        case OnlyOn(values):
            return "runs", f"only on {platforms(values)}"
        case Licensed(license):
            return ("has", "no license") if license is None else ("is", f'licensed under "{license}"')
        case Released():
            return _said_of_releases(condition)
        case _:
            return _said_of_names(condition)


def _said_of_names(condition: AnyCondition) -> tuple[str, str]:
    match condition:
        case Tagged(tag):
            return "is", f"tagged {tag}"
        case By(org):
            return "is", f"published by {org}"
        case MakerOf(slug):
            return "is", f"published by the publisher of {slug}"
        case Free():
            return "is", "free"
        case Named(slug):
            return "is", f"the product {slug}"
        case _:
            return _said_of_texts(condition)


def _said_of_texts(condition: AnyCondition) -> tuple[str, str]:
    match condition:
        case Titled(texts):
            return "has", f'"{" ".join(texts)}" in the title'
        case Mentioning(texts):
            return "mentions", f'"{" ".join(texts)}"'
        case StartingWith(text):
            return "starts", f'with "{text}"'
        case OnlyChannel(channel):
            return "has", f"only {channel} releases"
        case _:
            raise TypeError(f"no simple condition: {condition}")


def _said_of_releases(told: Released) -> tuple[str, str]:
    channel, span = f"{told.channel} " if told.channel else "", _span(told.since, told.until)
    if told.first:
        return "was", f"first released{f' {told.channel}' if told.channel else ''}{span}"
    article = "an" if told.channel == "alpha" else "a"
    return "has", f"{article} {channel}release{f' published{span}' if span else ''}"


def _span(since: str | None, until: str | None) -> str:
    """The range in words, with a blank before; '' for all time."""
    if since is None and until is None:
        return ""
    if since is None:
        return f" before {_day(until or '')}"
    if until is None:
        return f" since {_day(since)}"
    if not (since.endswith(_MIDNIGHT) and until.endswith(_MIDNIGHT)):
        return f" from {since} to {until}"
    last = (date.fromisoformat(until[:10]) - timedelta(days=1)).isoformat()
    return f" on {last}" if last == since[:10] else f" from {since[:10]} to {last}"


def _day(moment: str) -> str:
    return moment[:10] if moment.endswith(_MIDNIGHT) else moment


def clause(condition: AnyCondition, *, is_one: bool = False) -> str:
    """The condition as what is said of one product, or of several: "run on Linux and are free"."""
    if isinstance(condition, Every | Either):
        joint = " and " if isinstance(condition, Every) else " or "
        return joint.join(_part(each, is_one=is_one) for each in condition.of) or ("exist" if not is_one else "exists")
    if isinstance(condition, Not):
        return _denied(condition.of, is_one=is_one)
    verb, rest = _said(condition)
    if isinstance(condition, OfKind) and not is_one:
        return f"are {condition.value}s"
    return f"{verb if is_one else _PLURAL[verb]} {rest}"


def _part(condition: AnyCondition, *, is_one: bool) -> str:
    told = clause(condition, is_one=is_one)
    return f"({told})" if isinstance(condition, Every | Either) else told


def _denied(condition: AnyCondition, *, is_one: bool) -> str:
    if isinstance(condition, Every | Either | Not):
        return f"not ({clause(condition, is_one=is_one)})"
    if condition == Licensed(None):
        return "has a license" if is_one else "have a license"
    verb, rest = _said(condition)
    if isinstance(condition, OfKind) and not is_one:
        rest = f"{condition.value}s"
    if verb in ("is", "was"):
        return f"{verb if is_one else _PLURAL[verb]} not {rest}"
    return f"{'does' if is_one else 'do'} not {_BASE[verb]} {rest}"


def products(where: AnyCondition, *, is_one: bool = False) -> str:
    """The products in words: "games that run on Linux"; with `is_one`, "game that runs on Linux"."""
    held = where.of if isinstance(where, Every) else (where,)
    kinds = [each for each in held if isinstance(each, OfKind)]
    noun = f"{kinds[0].value}s" if len(kinds) == 1 else "products"
    rest = every([each for each in held if each not in kinds]) if len(kinds) == 1 else where
    noun = noun[:-1] if is_one else noun
    return noun if rest == ANYTHING else f"{noun} that {clause(rest, is_one=is_one)}"


def releases(asked: Releases, *, is_one: bool = False) -> str:
    """The releases in words: "beta releases of games that run on Linux published since 2026-03-01"."""
    noun = f"{f'{asked.channel} ' if asked.channel else ''}{'release' if is_one else 'releases'}"
    told = _span(asked.since, asked.until)
    above = "".join(f" not in {each}" for each in asked.barred)
    above += f" after version {asked.above}" if asked.above else ""
    above += f" before version {asked.below}" if asked.below else ""
    about = "" if asked.where == ANYTHING else f" of {_about(asked.where)}"
    return f"{noun}{f' published{told}' if told else ''}{above}{about}"


def _about(where: AnyCondition) -> str:
    return where.value if isinstance(where, Named) else products(where)


def publishers(asked: Publishers, *, is_one: bool = False) -> str:
    """The organisations in words."""
    noun = "publisher" if is_one else "publishers"
    of = "without" if asked.none else "of"
    return noun if asked.where == ANYTHING else f"{noun} {of} {products(asked.where)}"


_ORDERS = {
    "title": "",
    "newest": "newest ",
    "oldest": "oldest ",
    "debut_first": "first published ",
    "debut_last": "newly published ",
}


def of_set(asked: Products | Releases | Publishers, *, is_one: bool = False) -> str:
    """What a question for a set is about."""
    if isinstance(asked, Products):
        order = _ORDERS[asked.order]
        limit = "" if not asked.limit else "the " if is_one else f"the {asked.limit} "
        return f"{limit}{order}{products(asked.where, is_one=is_one)}"
    if isinstance(asked, Releases):
        many = "" if is_one else f"{asked.limit} "
        limit = f"the {many}{asked.order} " if asked.limit else ""
        return f"{limit}{releases(asked, is_one=is_one)}"
    return publishers(asked, is_one=is_one)


def number(count: int, asked: Products | Releases | Publishers) -> str:
    """ "3 games that run on Linux", "no games …", "1 game that …"."""
    return f"{count} {of_set(asked, is_one=count == 1)}"
