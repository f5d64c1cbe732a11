"""Tests of approvals may count for the results."""

from tests.records.figures import figures, is_full, pytest_runtest_makereport

__all__ = ["figures", "is_full", "pytest_runtest_makereport"]
