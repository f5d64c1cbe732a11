"""Signed addresses of blobs: whoever has one may fetch the bytes until it expires, without any credential."""

import base64
import binascii
from urllib.parse import urlencode

from countersign.kernel import clock
from countersign.kernel.errors import Refused
from countersign.kernel.security.encryption import Signer


class InvalidSignature(Refused):
    """The address was not signed by this service, or was changed since."""

    status = 403
    code = "invalid_signature"
    title = "Invalid signature"
    resolution = "Start the download again at the artifact's own address."


class AddressExpired(Refused):
    """The address was good, and its time is over."""

    status = 410
    code = "address_expired"
    title = "Address expired"
    resolution = "Start the download again at the artifact's own address."


def _message(sha256: str, filename: str, expires: int) -> bytes:
    return f"blob\n{sha256}\n{expires}\n{filename}".encode()


def signed_path(signer: Signer, sha256: str, filename: str, expires: int) -> str:
    """The path and query, after the API's base address, that give the blob until `expires` (seconds since 1970)."""
    signature = base64.urlsafe_b64encode(signer.sign(_message(sha256, filename, expires))).rstrip(b"=").decode()
    return f"/blobs/{sha256}?" + urlencode({"expires": expires, "filename": filename, "signature": signature})


def check(signer: Signer, sha256: str, filename: str, expires: int, signature: str) -> int:
    """Insist that the address is one of `signed_path` and still good; the seconds it has left.

    Raises:
        InvalidSignature: it is forged or changed.
        AddressExpired: its time is over.
    """
    try:
        raw = base64.b64decode(signature.encode("ascii") + b"=" * (-len(signature) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidSignature("the signature is none of this service") from error
    if not signer.verify(_message(sha256, filename, expires), raw):
        raise InvalidSignature("the signature does not belong to this address")
    left_s = expires - clock.now() // clock.SECOND
    if left_s <= 0:
        raise AddressExpired("the address has expired")
    return int(left_s)
