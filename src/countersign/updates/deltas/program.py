"""The process that makes deltas: an Order on standard input, deltas on standard output; it asks for the files it needs.

Builds are strangers' bytes: it is confined like the one that reads archives, and can do nothing but answer.
"""

import sys
from typing import BinaryIO

import msgspec

from countersign.archives import confinement
from countersign.updates import framing
from countersign.updates.deltas import making
from countersign.updates.deltas.making import Read, Side
from countersign.updates.deltas.messages import Delta, Done, Order, Wanted, encode
from countersign.updates.manifest import File


def main() -> int:
    """Make what the order asks for."""
    asked, told = sys.stdin.buffer, sys.stdout.buffer
    order = msgspec.msgpack.decode(framing.read(asked), type=Order)
    confinement.confine(folder=None, memory_bytes=order.memory_bytes, cpu_s=order.cpu_s)
    old = Side(order.old, _reader(asked, told, order.old, is_new=False))
    new = Side(order.new, _reader(asked, told, order.new, is_new=True))
    for made in making.make(old, new, order.group_bytes):
        framing.write(told, encode(Delta(made.old, made.files, made.memory, made.blob)))
    framing.write(told, encode(Done()))
    return 0


def _reader(asked: BinaryIO, told: BinaryIO, files: list[File], *, is_new: bool) -> Read:
    places = {file.path: place for place, file in enumerate(files)}

    def contents(file: File) -> bytes:
        framing.write(told, encode(Wanted(is_new, places[file.path])))
        return framing.read(asked)

    return contents


if __name__ == "__main__":
    sys.exit(main())
