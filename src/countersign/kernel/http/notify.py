"""Telling systemd how the service is (sd_notify(3)): ready, stopping, alive. Without systemd nothing is said."""

import os
import socket
from contextlib import suppress

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"


def notify(state: str) -> None:
    """Send the state to NOTIFY_SOCKET; whether anybody listens is not our concern."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sending:
        sending.setblocking(False)
        sending.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)


def watchdog_s() -> float | None:
    """How often systemd wants to hear that the service is alive (sd_watchdog_enabled(3)); None: not at all."""
    wanted, process = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not wanted.isdecimal() or not int(wanted):
        return None
    if process and process != str(os.getpid()):
        return None
    return int(wanted) / 1_000_000
