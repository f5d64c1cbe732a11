"""Plain text e-mails (RFC 5322), safe from header injection."""

import re
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate, parseaddr

from countersign.kernel import clock, ids
from countersign.kernel.errors import Refused
from countersign.settings import BadSetting

MAX_ADDRESS_LENGTH = 254
MAX_LINE_LENGTH = 900

# The unquoted local part of RFC 5322 §3.4.1 and a domain name, both in ASCII as browsers send them: programs map a
# non-ASCII name to different domains. The owner of a different domain could therefore verify the address.
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")


class BadAddress(Refused):
    """The text is not exactly one e-mail address."""

    code = "bad_email_address"
    title = "Not an e-mail address"
    resolution = "Write one address, like name@example.com."


def is_address(text: str) -> bool:
    """Return whether the text is exactly one address that mail can be sent to, of at most 254 characters."""
    return len(text) <= MAX_ADDRESS_LENGTH and _ADDRESS.fullmatch(text) is not None


def sender(text: str) -> Address:
    """Return the configured sender, as `Name <name@example.com>` or the address alone.

    Raises:
        BadSetting: the text has neither form.
    """
    name, address = parseaddr(text)
    if not is_address(address) or not text.isprintable():
        raise BadSetting(f"COUNTERSIGN_MAIL_FROM must be like `Countersign <no-reply@example.com>`, not {text!r}")
    return Address(name, addr_spec=address)


def compose(address: Address, recipient: str, subject: str, text: str) -> EmailMessage:
    """Compose the message, with a new Message-ID and the current Date. Line breaks in the subject become spaces, so
    that the subject cannot inject a header.

    Raises:
        BadAddress: `recipient` is not exactly one address.
    """
    if not is_address(recipient):
        raise BadAddress("the recipient is not exactly one address")
    message = EmailMessage(SMTP)
    message["From"] = address
    message["To"] = Address(addr_spec=recipient)
    message["Subject"] = " ".join("".join(c if c.isprintable() else " " for c in subject).split())
    message["Date"] = formatdate(clock.now() / clock.SECOND)
    message["Message-ID"] = f"<{ids.new_uuid()}@{address.domain}>"
    # Replies are not read, and automatic replies would reveal that the address is in use (RFC 3834 §5).
    message["Auto-Submitted"] = "auto-generated"
    # Leave the text unencoded where possible, so that links in the file or in the source of the mail stay intact.
    is_plain = text.isascii() and max(map(len, text.splitlines()), default=0) <= MAX_LINE_LENGTH
    message.set_content(text, cte="7bit" if is_plain else "quoted-printable")
    return message
