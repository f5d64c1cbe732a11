"""Imports between the frontend's files have no cycles."""

import os
import re
from graphlib import TopologicalSorter
from pathlib import Path

FRONTEND = Path(__file__).resolve().parents[2] / "frontend"
IMPORT = re.compile(r"""^(?:import|export)\b[^;]*?\bfrom\s+"(\.[^"]+)";|^import\s+"(\.[^"]+)";""", re.MULTILINE)


def imported_files(file: Path) -> set[Path]:
    """Return the files of the frontend that a file imports."""
    imported_names = [a or b for a, b in IMPORT.findall(file.read_text())]
    bases = [os.path.normpath(file.parent / name) for name in imported_names]
    return {path for base in bases for end in ("", ".ts", ".tsx") if (path := Path(base + end)).is_file()}


def test_no_file_imports_itself_through_other_files() -> None:
    files = [
        path
        for path in FRONTEND.rglob("*.ts*")
        if path.suffix in (".ts", ".tsx") and "node_modules" not in path.parts and not path.name.endswith(".d.ts")
    ]
    graph = {file: imported_files(file) for file in files}

    order = list(TopologicalSorter(graph).static_order())

    assert len(files) > 100
    assert sum(map(len, graph.values())) > 500
    assert set(order) >= set(files)
