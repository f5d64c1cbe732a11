"""Why a bucket cannot be used: each cause in words of its own, with its remedy. No host, bucket or key is named.

Settings and credentials are the operator's matter: cause and remedy are a note to the refusal, which callers of the API
are not told.
"""

import re
from typing import NamedTuple

from countersign.kernel.errors import Refused, Unavailable, disk_full

SETTING = "COUNTERSIGN_BLOBS_URL"
NO_BUCKET = "NoSuchBucket"

_CODE = re.compile(r"<Code>\s*(\w{1,100})\s*</Code>")
_STATUS = re.compile(r"non-2xx status code: (\d{3})")


class Cause(NamedTuple):
    """What is wrong with the bucket, as the end of a sentence that begins with it, and the remedy."""

    why: str
    remedy: str


_REGION = Cause("is in another region than the address says", f"Correct `region` in {SETTING}.")
_NO_RIGHT = Cause(
    "may not be used so by this access key",
    "Allow the key s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload there.",
)
_EXPIRED = Cause("is asked with a session token that has expired", "Renew AWS_SESSION_TOKEN and the key with it.")
_KEYLESS = Cause(
    "is asked without an access key, and this machine has no role", "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
)
_MISSING = Cause("is not there", f"Create it, or correct bucket and `endpoint` in {SETTING}.")
_FOREIGN = Cause("is behind an endpoint that does not answer as S3 does", f"Correct `endpoint` in {SETTING}.")
_BUSY = Cause("is behind a server that is busy or out of order", "Try again; look at the server's own state.")
_CUT = Cause("could not be reached, or broke off its answer", "Try again; look at the server and the way there.")

# The codes of S3 (its reference, error responses), which others that speak its protocol use as well.
_CODES = {
    "InvalidAccessKeyId": Cause(
        "is asked with an access key that its server does not know", "Correct AWS_ACCESS_KEY_ID."
    ),
    "SignatureDoesNotMatch": Cause(
        "is asked with a secret that is not the access key's", "Correct AWS_SECRET_ACCESS_KEY."
    ),
    "RequestTimeTooSkewed": Cause(
        "is behind a server whose clock is another than this machine's", "Set the clock of this machine by NTP."
    ),
    "ExpiredToken": _EXPIRED,
    "InvalidToken": _EXPIRED,
    NO_BUCKET: _MISSING,
    "PermanentRedirect": _REGION,
    "AuthorizationHeaderMalformed": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "SlowDown": _BUSY,
    "ServiceUnavailable": _BUSY,
    "InternalError": _BUSY,
}

# What the client's own words hold when no answer with a code came, in the order of asking.
_SIGNS = {
    "://169.254.": _KEYLESS,
    "redirect without LOCATION": _REGION,
    "dns error": Cause("is behind an endpoint that cannot be found", f"Correct the host of `endpoint` in {SETTING}."),
    "ConnectionRefused": Cause(
        "is behind an endpoint where nobody listens", f"Start it, or correct `endpoint` in {SETTING}."
    ),
    "InvalidCertificate": Cause(
        "is behind an endpoint whose certificate is not believed", "Add its authority to the machine's (SSL_CERT_FILE)."
    ),
    "InvalidContentType": Cause(
        "is behind an endpoint that does not speak TLS", f"Correct `endpoint` in {SETTING}, or its TLS."
    ),
    "TimedOut": Cause(
        "is behind an endpoint that does not answer in time", f"Correct `endpoint` in {SETTING}, or the way there."
    ),
    "error sending request": Cause("cannot be reached", f"Correct `endpoint` in {SETTING}, or the way there."),
}


def refusal(error: Exception) -> Refused:
    """What an error of the client means for whoever asked; why, and the remedy, are a note for the operator."""
    said = str(error)
    status = next(iter(_STATUS.findall(said)), "")
    # The client names no class for it; servers with a disk of their own answer 507.
    if status == "507":
        return disk_full("the bucket of the blobs")
    cause = _cause(said, status)
    refused = Unavailable("The bucket of the blobs cannot be used now.")
    refused.add_note(f"It {cause.why}. {cause.remedy}")
    return refused


def is_missing(error: Exception) -> bool:
    """Whether it is the bucket that is not there, and no object."""
    return _code(str(error)) == NO_BUCKET


def _cause(said: str, status: str) -> Cause:
    if known := _CODES.get(_code(said)):
        return known
    if sign := next((each for words, each in _SIGNS.items() if words in said), None):
        return sign
    if status in ("401", "403"):
        return _NO_RIGHT
    if status == "404":
        return _MISSING
    # Without a status no answer came, or its bytes ended early: whoever asks again may get all of it.
    if not status:
        return _CUT
    return _BUSY if status >= "500" else _FOREIGN


def _code(said: str) -> str:
    return next(iter(_CODE.findall(said)), "")
