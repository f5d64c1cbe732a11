"""The delta worker process: reads an order on stdin, requests the files it needs, writes deltas to stdout."""

import sys
from typing import BinaryIO

import msgspec

from countersign.archives import confinement
from countersign.updates import framing
from countersign.updates.deltas import make
from countersign.updates.deltas.make import BuildFiles, Read
from countersign.updates.deltas.protocol import Delta, DeltaOrder, EndOfDeltas, FileRequest, encode
from countersign.updates.manifest import File


def main() -> int:
    """Make what the order asks for."""
    asked, told = sys.stdin.buffer, sys.stdout.buffer
    order = msgspec.msgpack.decode(framing.read(asked), type=DeltaOrder)
    confinement.confine(folder=None, memory_bytes=order.memory_bytes, cpu_s=order.cpu_s)
    old = BuildFiles(order.old, _reader(asked, told, order.old, is_new=False))
    new = BuildFiles(order.new, _reader(asked, told, order.new, is_new=True))
    for made in make.make(old, new, order.group_bytes):
        framing.write(told, encode(Delta(made.old, made.files, made.memory, made.blob)))
    framing.write(told, encode(EndOfDeltas()))
    return 0


def _reader(asked: BinaryIO, told: BinaryIO, files: list[File], *, is_new: bool) -> Read:
    places = {file.path: place for place, file in enumerate(files)}

    def contents(file: File) -> bytes:
        framing.write(told, encode(FileRequest(is_new, places[file.path])))
        return framing.read(asked)

    return contents


if __name__ == "__main__":
    sys.exit(main())
