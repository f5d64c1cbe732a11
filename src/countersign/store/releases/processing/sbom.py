"""The SBOM of a build as one CycloneDX 1.5 document, collected from the files of the build that list components."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from countersign.updates.worker_protocol import MetadataFile

MAX_COMPONENTS = 10_000
MAX_TEXT_LENGTH = 300
_NAMED = re.compile(r"^(name|version):[ \t]*([^\n]*)", re.IGNORECASE | re.MULTILINE)


class Component(msgspec.Struct, omit_defaults=True, frozen=True, rename={"bom_ref": "bom-ref"}):
    """One part of a build (CycloneDX 1.5, components)."""

    name: str
    version: str = ""
    type: str = "library"
    purl: str | None = None


class Metadata(msgspec.Struct, frozen=True):
    """The subject of the document."""

    component: Component


class Bill(msgspec.Struct, frozen=True):
    """A bill of materials (CycloneDX 1.5)."""

    bomFormat: str
    specVersion: str
    version: int
    metadata: Metadata
    components: list[Component]


class _Package(msgspec.Struct, frozen=True):
    name: str = ""
    version: str = ""
    purl: str | None = None
    versionInfo: str = ""


class _Document(msgspec.Struct, frozen=True):
    """The members of CycloneDX, SPDX, package.json and package-lock.json that list components; others are ignored.
    `version` is the package's in package.json, and the number of the document's revision in CycloneDX."""

    bomFormat: str = ""
    spdxVersion: str = ""
    components: list[_Package] = []
    packages: Any = None
    name: str = ""
    version: str | int = ""


def bill_of_materials(name: str, version: str, notes: Iterable[MetadataFile]) -> tuple[str, int] | None:
    """The document as JSON and the number of its components; None if the build lists no components.

    Unreadable files are ignored.
    """
    components_by_key: dict[tuple[str, str], Component] = {}
    for note in notes:
        if len(components_by_key) >= MAX_COMPONENTS:
            break
        for component in _components_of(note):
            components_by_key.setdefault((component.name, component.version), component)
    if not components_by_key:
        return None
    components = [components_by_key[key] for key in sorted(components_by_key)][:MAX_COMPONENTS]
    fields = Bill("CycloneDX", "1.5", 1, Metadata(Component(name, version, "application")), components)
    return msgspec.json.encode(fields).decode(), len(components)


def _components_of(note: MetadataFile) -> list[Component]:
    try:
        text = note.content.decode()
        if note.path.endswith("/METADATA"):
            return _wheel_component(text)
        return _json(note.path, msgspec.json.decode(text, type=_Document))
    except (UnicodeDecodeError, RecursionError, msgspec.DecodeError):
        return []


def _wheel_component(text: str) -> list[Component]:
    """Core metadata of a Python distribution (PEP 643)."""
    head = text.replace("\r\n", "\n").partition("\n\n")[0]
    # If a field occurs several times, use the first value.
    header_fields = {key.lower(): fields.strip() for key, fields in reversed(_NAMED.findall(head))}
    name, version = header_fields.get("name", ""), header_fields.get("version", "")
    return [_component(name, version, f"pkg:pypi/{name.lower().replace('_', '-')}@{version}")] if name else []


def _json(path: str, fields: _Document) -> list[Component]:
    if fields.bomFormat == "CycloneDX":
        return [
            _component(component.name, component.version, component.purl)
            for component in fields.components
            if component.name
        ]
    if fields.spdxVersion:
        return _spdx_components(fields)
    if path.endswith("package-lock.json"):
        return _npm_lock_components(fields)
    if fields.name and fields.version and isinstance(fields.version, str):
        return [_npm_component(fields.name, fields.version)]
    return []


def _spdx_components(fields: _Document) -> list[Component]:
    """Packages of an SPDX 2.3 document."""
    spdx_packages = msgspec.convert(fields.packages or [], list[_Package])
    return [_component(package.name, package.versionInfo, None) for package in spdx_packages if package.name]


def _npm_lock_components(fields: _Document) -> list[Component]:
    """Return the packages of an npm lock file, without the root package, which has an empty path."""
    packages_by_path = msgspec.convert(fields.packages or {}, dict[str, _Package])
    names_and_versions = (
        (path.rpartition("node_modules/")[2], value.version) for path, value in packages_by_path.items() if path
    )
    return [_npm_component(name, version) for name, version in names_and_versions if version]


def _npm_component(name: str, version: str) -> Component:
    return _component(name, version, f"pkg:npm/{name}@{version}")


def _component(name: str, version: str, purl: str | None) -> Component:
    return Component(
        name[:MAX_TEXT_LENGTH], version[:MAX_TEXT_LENGTH], purl=None if purl is None else purl[:MAX_TEXT_LENGTH]
    )
