"""How long query tests run, and where their figures go."""

from tests.records.figures import figures, is_full, pytest_runtest_makereport

__all__ = ["figures", "is_full", "pytest_runtest_makereport"]
