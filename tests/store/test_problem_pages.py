"""The page of a problem type describes every response of that type."""

from countersign.kernel.errors import NotFound
from countersign.store.apidocs.problems import EVERYWHERE, ProblemTypeNotFound, problem_types
from tools.reference import EVERY_ROUTE


def test_a_code_that_features_share_is_explained_in_general() -> None:
    known_types = problem_types(EVERY_ROUTE)

    assert any(ProblemTypeNotFound in route.refusals for route in EVERY_ROUTE)
    assert known_types["resource-not-found"] is NotFound
    assert [known_types[refusal.code.replace("_", "-")] for refusal in EVERYWHERE] == [*EVERYWHERE]
