"""Libraries that intercept a process's calls of the C library (LD_PRELOAD), built from the C files of this folder."""

import atexit
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

HERE = Path(__file__).parent


def compile_library(name: str, folder: Path) -> Path:
    """Copy the compiled library of `name`.c to the folder, and return its path. The test is skipped if the library
    cannot be compiled."""
    return Path(shutil.copy(_compiled_library(name), folder))


@cache
def _compiled_library(name: str) -> Path:
    """Return the library, compiled once for the test run."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if sys.platform != "linux" or compiler is None:
        pytest.skip(f"{name}.c needs Linux and a C compiler: install gcc to run this test")
    folder = Path(mkdtemp(prefix="countersign-preload-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library_path = folder / f"{name}.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", library_path, HERE / f"{name}.c", "-ldl"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        pytest.skip(f"{name}.c needs a C compiler with its headers: {result.stderr[-300:]}")
    return library_path
