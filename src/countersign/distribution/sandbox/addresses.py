"""Capability addresses of a data set: they work without its key, so they carry the data set's name and a signature.

A holder of an upload address may send the file without a credential. Other addresses below ROOT/sandbox belong to the
data set of the key that is sent with them.
"""

import re

from countersign.distribution.context import Store
from countersign.distribution.sandbox.parts import ROOT

_SIGNED = b"sandbox address\0"
_FORM = re.compile(
    rb"%s/(?P<name>[0-9A-Za-z_-]{1,64})\.(?P<signature>[0-9a-f]{32})(?=/api/v1/(artifacts/uploads|media/uploads|blobs)/)"
    % ROOT.encode()
)


def root(store: Store, name: str) -> str:
    """The path below which the data set of this name is reached without its key."""
    return f"{ROOT}/{name}.{store.addresses.sign(_SIGNED + name.encode()).hex()}"


def named(store: Store, path: bytes) -> tuple[str, str] | None:
    """The name of the data set and the root, where the path is an upload or a signed download of a data set; else
    None, also where the signature is wrong."""
    found = _FORM.match(path)
    if found is None or not store.addresses.verify(_SIGNED + found["name"], bytes.fromhex(found["signature"].decode())):
        return None
    return found["name"].decode(), found[0].decode()
