"""`verifying.py describe TREE FILE` writes the manifest of a tree. `verify TREE FILE` verifies the tree against the
manifest and prints the seconds."""

import hashlib
import sys
import time
from pathlib import Path

from countersign.updates import chunks, manifest
from countersign.updates.install.integrity import check
from countersign.updates.install.user_files import scan
from countersign.updates.manifest import Chunk, File, Manifest


def describe(tree: Path) -> Manifest:
    """Return the manifest of all files in the tree."""
    file_chunks: list[Chunk] = []
    files: list[File] = []
    for path in sorted(tree.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            content_chunks = [Chunk(chunks.chunk_id(chunk), len(chunk)) for chunk in chunks.cut(iter([content]))]
            indexes = list(range(len(file_chunks), len(file_chunks) + len(content_chunks)))
            file_chunks += content_chunks
            name = path.relative_to(tree).as_posix()
            mode = 0o755 if path.stat().st_mode & 0o111 else 0o644
            digests = hashlib.sha256(content).hexdigest(), chunks.chunk_id(content)
            files.append(File(name, mode, len(content), *digests, indexes))
    return Manifest(
        org="bench",
        product_id="",
        product="bench",
        version="1",
        artifact="",
        artifact_sha256="0" * 64,
        artifact_size=0,
        platform=None,
        created_at="",
        files=files,
        links=[],
        folders=[],
        chunks=file_chunks,
        launch=[],
    )


def verify(tree: Path, expected: Manifest) -> float:
    """Verify the tree and return the seconds. All files must match."""
    began_s = time.monotonic()
    integrity = check(tree, scan(tree), None, expected, verify=True)
    took_s = time.monotonic() - began_s
    assert len(integrity.local.files) == len(expected.files), "a file does not match the manifest"
    return took_s


if __name__ == "__main__":
    tree, manifest_file = Path(sys.argv[2]), Path(sys.argv[3])
    if sys.argv[1] == "describe":
        manifest_file.write_bytes(manifest.encode(describe(tree)))
    else:
        print(verify(tree, manifest.decode(manifest_file.read_bytes())))
