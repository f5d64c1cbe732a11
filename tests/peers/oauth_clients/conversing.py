"""How a client here is told what to do, sends a person to the store, and tells what it saw."""

import json
import sys
from typing import Any

SCOPE = "read:library"


def given() -> dict[str, Any]:
    """What the test says: addresses, the client's credentials, what to do."""
    return json.loads(sys.argv[1])


def allowed(address: str) -> str:
    """Send the person to an address of the store; where the person came back to."""
    sys.stdout.write(json.dumps({"open": address}) + "\n")
    sys.stdout.flush()
    return sys.stdin.readline().strip()


def tell(**seen: Any) -> None:
    """What was seen in the end."""
    sys.stdout.write(json.dumps({"seen": seen}) + "\n")
