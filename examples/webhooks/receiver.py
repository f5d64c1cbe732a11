"""A receiver of webhooks: checks who sends, answers at once, and does each event's work once.

Run it with the secret in WEBHOOK_SECRET: python receiver.py [PORT]
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

TOLERANCE_S = 300
LARGEST = 65_536


def verified(secret: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
    """Return the event in the body. Raise ValueError unless it was signed with the secret in the last five minutes."""
    message, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(time.time() - int(timestamp)) > TOLERANCE_S:
        raise ValueError("too old, or from the future")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed_bytes = b".".join((message.encode(), timestamp.encode(), body))
    expected_signature = "v1," + base64.b64encode(hmac.digest(key, signed_bytes, hashlib.sha256)).decode()
    # During a change of the secret there are several signatures, and one of them is made with our secret.
    signatures = headers["webhook-signature"].split()
    if not any(hmac.compare_digest(expected_signature.encode(), signature.encode()) for signature in signatures):
        raise ValueError("signed by somebody else")
    return json.loads(body)


class Receiver(BaseHTTPRequestHandler):
    """Accepts events by POST."""

    seen: ClassVar[set[str]] = set()

    def do_POST(self) -> None:
        """Answer 204 for an event, also for an event that was received before. Answer 400 for anything else."""
        body = self.rfile.read(min(int(self.headers.get("content-length") or 0), LARGEST))
        try:
            event = verified(os.environ["WEBHOOK_SECRET"], {k.lower(): v for k, v in self.headers.items()}, body)
        except (KeyError, ValueError):
            self.send_response(400)
        else:
            # Events come at least once: remember ids where it outlives the process, for a week or so.
            if event["id"] not in self.seen:
                self.seen.add(event["id"])
                print(event["type"], event["subject"], flush=True)
            self.send_response(204)
        self.end_headers()


if __name__ == "__main__":
    if not os.environ.get("WEBHOOK_SECRET", "").startswith("whsec_"):
        sys.exit("WEBHOOK_SECRET holds no secret: set it to the whsec_… that was printed when the webhook was added.")
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 9000), Receiver).serve_forever()
