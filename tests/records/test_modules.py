"""Modules are found through the entry points of installed packages. A module that cannot be used is reported with the
reason and the remedy."""

import sys
from pathlib import Path

import pytest

from countersign.declare import DeclarationError
from countersign.records import modules


@pytest.fixture
def installed_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose packages Python treats as installed."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def package(folder: Path, name: str, text: str, entry_point: str = "") -> None:
    """Install a package with one file, and with an entry point of this name."""
    (folder / f"foreign_{name}.py").write_text(text)
    info = folder / f"foreign_{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: foreign-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[countersign.modules]\n{name} = {entry_point or f'foreign_{name}:module'}\n"
    )


def test_names_are_separated_by_commas_and_spaces_do_not_matter() -> None:
    assert modules.module_names(" party, crm ,,billing\n") == ("party", "crm", "billing")
    assert modules.module_names("") == ()


def test_without_module_names_only_the_engine_is_loaded() -> None:
    assert [module.name for module in modules.found([]).modules] == ["base"]
    assert [module.name for module in modules.found(["base"]).modules] == ["base"]


def test_a_package_that_is_installed_offers_its_module(installed_folder: Path) -> None:
    text = (
        "from countersign.declare import Model, Module, Text\n"
        "class Bed(Model):\n    title = Text()\n"
        "module = Module('beds', version='2.1', models=(Bed,))\n"
    )
    package(installed_folder, "beds", text)

    registry = modules.found(["beds"])

    assert modules.installed_modules()["beds"] == "foreign_beds:module"
    assert registry.models["bed"].source == str(installed_folder / "foreign_beds.py")


def test_a_module_that_no_package_offers_is_reported_with_the_available_modules() -> None:
    reason = r"'bedz', which no installed package offers \(installed: .*billing, crm"

    with pytest.raises(DeclarationError, match=reason):
        modules.found(["party", "bedz"])


@pytest.mark.parametrize(
    ("name", "text", "entry_point", "reason"),
    [
        ("gone", "", "foreign_away:module", r"'gone' \(foreign_away:module\) cannot be imported: ModuleNotFound"),
        ("bare", "", "", r"'bare' \(foreign_bare:module\) cannot be imported: .*attribute 'module'"),
        ("crooked", "def module(:\n", "", r"'crooked' .* cannot be imported: "),
        ("unnamed", "module = Module()\n", "", r"foreign_unnamed\.py, line 1: NameError: name 'Module' is not defined"),
        (
            "wrong",
            "from countersign.declare import where\n\nwhere('a', equals=1)\n",
            "",
            r"foreign_wrong\.py, line 3: ValueError: where\('a', …\): name exactly one of",
        ),
        ("plain", "module = 'plain'\n", "", "foreign_plain:module must be a Module called 'plain'"),
        (
            "other",
            "from countersign.declare import Module\nmodule = Module('another', version='1')\n",
            "",
            "foreign_other:module must be a Module called 'other': correct its entry point",
        ),
    ],
)
def test_a_package_without_a_usable_module_is_distinguished(
    installed_folder: Path, name: str, text: str, entry_point: str, reason: str
) -> None:
    package(installed_folder, name, text, entry_point)

    with pytest.raises(DeclarationError, match=reason):
        modules.found([name])
