"""Libraries that come between a process and its C library (LD_PRELOAD), made from the C files of this folder."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def compiled(name: str, folder: Path) -> Path:
    """The library of `name`.c; the test is skipped where it cannot be made."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if sys.platform != "linux" or compiler is None:
        pytest.skip(f"{name}.c needs Linux and a C compiler: install gcc to run this test")
    made = folder / f"{name}.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", made, HERE / f"{name}.c", "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{name}.c needs a C compiler with its headers: {done.stderr[-300:]}")
    return made
