"""Simulates machines with Linux network namespaces. Each machine has a virtual network cable that a test can cut.

Through its cable, a simulated machine reaches servers on the loopback address of the real machine. Tests reach the
simulated machine through a relay that is never cut, so that they can send it requests while the cable is cut. The other
end of the cable is in a second namespace: if addresses changed in the namespace of the tests, Chromium would abort the
connections that it is opening (ERR_NETWORK_CHANGED).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tests.servers import relay
from tests.servers.countersign import COMMAND, SOURCE
from tests.servers.process import free_port, run_until_ready

RELAY = (sys.executable, str(Path(__file__).with_name("relay.py")))
FIRST_START_S = 240
"""The maximum time for the first start of a node, which creates the tables and the demonstration data over its
cable."""

_numbers = count()


class CannotSeparate(Exception):
    """Network namespaces cannot be created here. The text contains the reason."""


class Machine:
    """A network namespace with a cable to a second namespace, the hub. At the address `far` of the hub, the namespace
    reaches servers of the real machine."""

    far, near = "10.192.0.1", "10.192.0.2"

    def __init__(self) -> None:
        self.name = f"cs{os.getpid() % 100_000}n{next(_numbers)}"
        self.hub = f"{self.name}h"

    def create(self) -> None:
        """Create both namespaces and the cable.

        Raises:
            CannotSeparate: the system does not allow it.
        """
        _ip("netns", "add", self.name)
        _ip("netns", "add", self.hub)
        _ip("-n", self.hub, "link", "add", "cable", "type", "veth", "peer", "name", "back", "netns", self.name)
        _ip("-n", self.hub, "address", "add", f"{self.far}/30", "dev", "cable")
        _ip("-n", self.hub, "link", "set", "cable", "up")
        self._inside("address", "add", f"{self.near}/30", "dev", "back")
        self._inside("link", "set", "back", "up")
        self._inside("link", "set", "lo", "up")

    def remove(self) -> None:
        """Delete both namespaces."""
        for name in (self.name, self.hub):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def cut(self) -> None:
        """Cut the cable. The machine notices at once that it has no connection."""
        self._inside("link", "set", "back", "down")

    def swallow(self) -> None:
        """Drop all packets to the machine. Packets from the machine still arrive, but it never receives a response."""
        _ip("-n", self.hub, "route", "add", "blackhole", f"{self.near}/32")

    def heal(self) -> None:
        """Undo `cut` and `swallow`."""
        arguments = ("ip", "-n", self.hub, "route", "delete", "blackhole", f"{self.near}/32")
        subprocess.run(arguments, capture_output=True, check=False)
        self._inside("link", "set", "back", "up")

    def command(self, *arguments: str | Path, settings: Mapping[str, str] | None = None) -> list[str | Path]:
        """Return a command line that runs the command on the machine."""
        variables = {"PYTHONPATH": str(SOURCE), **(settings or {})}
        return ["ip", "netns", "exec", self.name, "env", *(f"{k}={v}" for k, v in variables.items()), *arguments]

    def _inside(self, *arguments: str) -> None:
        _ip("-n", self.name, *arguments)


def _ip(*arguments: str) -> None:
    result = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if result.returncode:
        raise CannotSeparate(f"ip {' '.join(arguments)}: {result.stderr.strip()}")


@contextmanager
def machines(number: int, ports: Sequence[int]) -> Iterator[list[Machine]]:
    """Create machines until the block ends. At its `far` address, each machine reaches these loopback ports of the real
    machine.

    The test is skipped if namespaces cannot be created.
    """
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and ip (Debian: apt install iproute2)")
    with ExitStack() as stack:
        created_machines = [Machine() for _ in range(number)]
        for machine in created_machines:
            stack.callback(machine.remove)
            try:
                machine.create()
            except CannotSeparate as error:
                pytest.skip(f"no network namespaces here: {error}")
            for port in ports:
                _start_relay(stack, machine, "--listen", machine.hub, f"{machine.far}:{port}=127.0.0.1:{port}")
        yield created_machines


@contextmanager
def node(machine: Machine, data: Path, settings: Mapping[str, str], *options: str) -> Iterator[dict[str, int]]:
    """Run both services on the machine until the block ends. Return the loopback ports of the real machine through
    which tests reach the services."""
    ports = {"distribution": free_port(), "records": free_port()}
    log = data.with_name(data.name + ".log")
    command = machine.command(*COMMAND, "serve", "--data", data, *options, settings=settings)
    with ExitStack() as stack:
        is_ready = partial(_contains, log, "Stop with ctrl-C")
        stack.enter_context(run_until_ready(command, is_ready=is_ready, log=log, within_s=FIRST_START_S))
        inner_ports = {"distribution": 8480, "records": 8080}
        pairs = [f"127.0.0.1:{ports[name]}=127.0.0.1:{port}" for name, port in inner_ports.items()]
        _start_relay(stack, machine, "--connect", machine.name, *pairs)
        yield ports


def _start_relay(stack: ExitStack, machine: Machine, *arguments: str) -> None:
    log = Path(tempfile.gettempdir()) / f"{machine.name}-{next(_numbers)}.log"
    stack.callback(log.unlink, missing_ok=True)
    stack.enter_context(run_until_ready([*RELAY, *arguments], is_ready=partial(_contains, log, relay.READY), log=log))


def _contains(log: Path, text: str) -> bool:
    return text in log.read_text()
