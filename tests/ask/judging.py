"""Whether an answer is right, by the rules of README.md."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).parent
UNABLE = re.compile(r"I cannot tell\b|.{1,120} has no published version ")
"""How an answer begins that claims nothing of what was asked; that a version is not there is one (README.md)."""


@dataclass(frozen=True)
class Catalog:
    """What the judge knows of the catalog: slugs by title, and every version."""

    titles: dict[str, str] = field(default_factory=dict)
    versions: frozenset[str] = frozenset()


def catalog() -> Catalog:
    """The catalog of catalog.json, hidden things included."""
    products = json.loads((HERE / "catalog.json").read_text())["products"]
    versions = frozenset(release["version"] for each in products for release in each["releases"])
    return Catalog({each["title"]: each["slug"] for each in products}, versions)


def questions(name: str) -> list[dict[str, Any]]:
    """The lines of a file."""
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


def is_right(line: dict[str, Any], answer: dict[str, Any], known: Catalog) -> bool:
    """Whether the answer is exactly what the line expects."""
    if line["kind"] == "refused":
        return is_refusal(line["question"], answer, known)
    if is_cautious(answer):
        return False
    return bool(_JUDGES[line["kind"]](line, answer, known))


def is_refusal(question: str, answer: dict[str, Any], known: Catalog) -> bool:
    """Whether the answer says that it cannot tell and gives no fact: no release, and no product but one that the
    question names."""
    named = {slug for title, slug in known.titles.items() if title.lower() in question.lower()}
    given = _products(answer)
    has_release = any(source["release"] for source in answer["sources"])
    return is_cautious(answer) and not has_release and given <= named


def is_cautious(answer: dict[str, Any]) -> bool:
    """Whether an answer that is not right at least claims nothing."""
    return UNABLE.match(answer["answer"]) is not None


def _products(answer: dict[str, Any]) -> set[str]:
    return {source["product"] for source in answer["sources"] if source["product"]}


def _by_products(line: dict[str, Any], answer: dict[str, Any], _known: Catalog) -> bool:
    return sorted(_products(answer)) == line["expect"]


def _by_releases(line: dict[str, Any], answer: dict[str, Any], _known: Catalog) -> bool:
    found = {(source["product"], source["release"]) for source in answer["sources"] if source["release"]}
    return sorted(map(list, found)) == line["expect"]


def _by_count(line: dict[str, Any], answer: dict[str, Any], known: Catalog) -> bool:
    said = answer["answer"]
    for name in sorted({*known.titles, *known.versions}, key=len, reverse=True):
        said = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w])", "", said)
    numbers = re.findall(r"(?<![\w.-])\d[\d,]*(?![\w-])", said)
    return bool(numbers) and int(numbers[0].replace(",", "")) == line["expect"]


def _by_yes_no(line: dict[str, Any], answer: dict[str, Any], known: Catalog) -> bool:
    said = re.match(r"(Yes|No)\b", answer["answer"])
    if said is None or (said[1] == "Yes") != line["expect"]:
        return False
    given, about = _products(answer), set(line["about"])
    names_any = any(title.lower() in line["question"].lower() for title in known.titles)
    if names_any:
        return given <= about
    return bool(given) and given <= about if line["expect"] else given <= about or not given


def _by_text(line: dict[str, Any], answer: dict[str, Any], _known: Catalog) -> bool:
    about, said = set(line["expect"]["about"]), answer["answer"]
    if about and _products(answer) != about:
        return False
    wanted = line["expect"]["contains"]
    return all(text in said or (text.islower() and text in said.lower()) for text in wanted)


_JUDGES = {
    "products": _by_products,
    "releases": _by_releases,
    "count": _by_count,
    "yes_no": _by_yes_no,
    "text": _by_text,
}


Outcome = Literal["right", "partial", "refused", "wrong"]
MAX_ROWS_BESIDE = 20
"""Rows that a helpful partial answer may have beside the expected ones: as many as an answer shows."""


def outcome(line: dict[str, Any], answer: dict[str, Any], known: Catalog) -> Outcome:
    """What became of a question, by the rules of README.md."""
    if is_right(line, answer, known):
        return "right"
    if answer["status"] == "refused" or is_cautious(answer):
        return "refused"
    return "partial" if answer["status"] == "partial" and is_helpful(line, answer) else "wrong"


def is_helpful(line: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether the rows of a partial answer contain all that is expected, or nothing else."""
    if line["kind"] == "text":
        about = set(line["expect"]["about"])
        return bool(about & _products(answer))
    if line["kind"] not in ("products", "releases"):
        return False
    is_of_releases = line["kind"] == "releases"
    rows = {(each["product"], each["release"]) if is_of_releases else each["product"] for each in answer["sources"]}
    wanted = {tuple(each) if is_of_releases else each for each in line["expect"]}
    return bool(rows) and (rows <= wanted or (wanted <= rows and len(rows) <= len(wanted) + MAX_ROWS_BESIDE))
