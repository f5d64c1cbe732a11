"""The /metrics of a server that has received no request yet."""

import re
from pathlib import Path

from tests.cli.test_operator import serve_with_operator_port

DOCS = Path(__file__).parents[2] / "docs"


def test_every_metric_is_reported_from_the_start(tmp_path: Path) -> None:
    with serve_with_operator_port(tmp_path / "data") as server:
        sample_lines = server.numbers()

    names = {re.sub(r"_(bucket|sum|count)$", "", line.partition("{")[0]) for line in sample_lines}
    documented = re.findall(r"^\| `(\w+)`", (DOCS / "reference/metrics.md").read_text(), re.MULTILINE)
    assert set(documented) <= names
    assert (
        sample_lines['countersign_jobs{status="failed"}']
        == sample_lines['countersign_jobs_oldest_seconds{status="queued"}']
        == 0
    )
