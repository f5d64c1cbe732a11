"""Functions with which a client script reads its input, sends a person to the store, and prints its results."""

import json
import sys
from typing import Any

SCOPE = "read:library"


def read_input() -> dict[str, Any]:
    """Return the test's input: addresses, the client's credentials, the steps."""
    return json.loads(sys.argv[1])


def send_person_to(address: str) -> str:
    """Send the person to an address of the store, and return the address that they came back to."""
    sys.stdout.write(json.dumps({"open": address}) + "\n")
    sys.stdout.flush()
    return sys.stdin.readline().strip()


def tell(**results: Any) -> None:
    """Print the final results."""
    sys.stdout.write(json.dumps({"seen": results}) + "\n")
