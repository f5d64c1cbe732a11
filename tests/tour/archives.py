"""A real archive to push: the wheel of one of the product's own dependencies."""

import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path


def dependency_wheel(name: str, folder: Path) -> Path:
    """Return the wheel of an installed dependency: from the package installer's cache or index, or, when neither is
    available, rebuilt from its installed files."""
    version = distribution(name).version
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--dest", folder, f"{name}=={version}"], capture_output=True, timeout=120, check=False)
    wheels = sorted(folder.glob("*.whl"))
    return wheels[0] if wheels else _reassemble(name, folder)


def _reassemble(name: str, folder: Path) -> Path:
    installed = distribution(name)
    path = folder / f"{name}-{installed.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in installed.files or ():
            source = Path(str(file.locate()))
            if source.is_file() and not str(file).startswith("..") and source.suffix != ".pyc":
                wheel.write(source, str(file))
    return path
