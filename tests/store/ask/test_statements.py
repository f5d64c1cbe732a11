"""One question runs a limited number of statements."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from countersign.store.context import Store
from tests.store.ask.shelf import ask_shelf

MAX_STATEMENTS = 36
"""The maximum number of statements for one question. The files of each release in the answer need one statement."""


@pytest.fixture
def statements(shelf: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the statements that run from now on."""
    statement_texts: list[str] = []

    def count_calls(run: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def ran(text: str, *values: Any) -> Any:
            statement_texts.append(text)
            return await run(text, *values)

        return ran

    for name in ("fetch", "fetch_one", "scan"):
        monkeypatch.setattr(shelf.database, name, count_calls(getattr(shelf.database, name)))
    return statement_texts


WORST = {
    "unknown words": " ".join(f"zorb{number}" for number in range(200)),
    "unknown words apart": " and ".join(f"zorb{number}" for number in range(200)),
    "capital runs": "Which games " + ", ".join(f"Zorb{number} Quux" for number in range(100)),
    "capital runs in lists": "Is Zorbx in Linux or Zorby in beta or Zorbz " + "or Qorbz in MIT " * 60,
    "mistyped titles": " and ".join(f"Quilx{number} on Windows" for number in range(60)),
    "known words": "Which " + " games ".join(["Slow", "Rivers", "Voyage", "Canal", "Letters", "Barge"] * 20),
    "licenses": " or ".join(f"{family} {number}" for number in range(20) for family in ("gpl", "bsd", "apache", "cc")),
    "tags": "games tagged " + " or ".join(f"tag{number} cozy boats puzzle maps" for number in range(60)),
    "compared products": "Compare " + " and ".join(["Slow Rivers", "Quill", "Hammer", "Latest Train"] * 20),
    "files": "artifacts notes org license of all products",
    "suggestions of a product": "What is Slow Rivers " + " and ".join(f"Zorb{number} on Qorb" for number in range(60)),
    "suggestions of a tag": "Which cozy games " + ", ".join(f"Zorb{number} on Qorb" for number in range(60)),
    "files of releases": "Show the artifacts and notes of the 40 newest releases of all free and entitled games",
    "files of products": "files and sha256 of the releases of all games and apps and tools for Windows",
    "platforms": "How many products are there by platform?",
}


@pytest.mark.parametrize("name", sorted(WORST))
async def test_a_question_runs_a_bounded_number_of_statements(shelf: Store, statements: list[str], name: str) -> None:
    await ask_shelf(shelf, WORST[name][:2_000])

    assert 0 < len(statements) <= MAX_STATEMENTS
