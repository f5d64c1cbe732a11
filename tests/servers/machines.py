"""Machines of their own as far as the network goes: namespaces, each on a cable that can be cut.

A machine reaches servers on this one's loopback through its cable; tests reach the machine by a way of their own, which
is never cut, so that they can ask it how it bears being cut off. The cable's other end is in a namespace too: Chromium
fails the connections it is opening (ERR_NETWORK_CHANGED) when an address comes or goes where it runs.
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
from tests.servers.process import free_port, serving

RELAY = (sys.executable, str(Path(__file__).with_name("relay.py")))
FIRST_START_S = 240
"""How long a node may take that makes the tables and the demonstration over its cable, on a busy machine."""

_numbers = count()


class CannotSeparate(Exception):
    """This machine lets nobody make network namespaces; the text says why."""


class Machine:
    """A namespace with a cable to another one, `hub`, where this machine's servers are found at the address `far`."""

    far, near = "10.192.0.1", "10.192.0.2"

    def __init__(self) -> None:
        self.name = f"cs{os.getpid() % 100_000}n{next(_numbers)}"
        self.hub = f"{self.name}h"

    def lay(self) -> None:
        """Make the namespace and its cable.

        Raises:
            CannotSeparate: not allowed here.
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
        """Take away both."""
        for name in (self.name, self.hub):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def cut(self) -> None:
        """Cut the cable: the machine notices at once that it is alone."""
        self._inside("link", "set", "back", "down")

    def swallow(self) -> None:
        """Let nothing come back: what the machine sends arrives, and it waits for answers in vain."""
        _ip("-n", self.hub, "route", "add", "blackhole", f"{self.near}/32")

    def heal(self) -> None:
        """Mend whichever of the two it was."""
        words = ("ip", "-n", self.hub, "route", "delete", "blackhole", f"{self.near}/32")
        subprocess.run(words, capture_output=True, check=False)
        self._inside("link", "set", "back", "up")

    def command(self, *words: str | Path, settings: Mapping[str, str] | None = None) -> list[str | Path]:
        """The command, to be run on the machine."""
        variables = {"PYTHONPATH": str(SOURCE), **(settings or {})}
        return ["ip", "netns", "exec", self.name, "env", *(f"{k}={v}" for k, v in variables.items()), *words]

    def _inside(self, *words: str) -> None:
        _ip("-n", self.name, *words)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotSeparate(f"ip {' '.join(words)}: {done.stderr.strip()}")


@contextmanager
def machines(number: int, ports: Sequence[int]) -> Iterator[list[Machine]]:
    """So many machines, each of which finds these ports of this machine's loopback at its `far` address.

    Skips the test where namespaces cannot be made.
    """
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and ip (Debian: apt install iproute2)")
    with ExitStack() as stack:
        made = [Machine() for _ in range(number)]
        for machine in made:
            stack.callback(machine.remove)
            try:
                machine.lay()
            except CannotSeparate as error:
                pytest.skip(f"no network namespaces here: {error}")
            for port in ports:
                _relayed(stack, machine, "--listen", machine.hub, f"{machine.far}:{port}=127.0.0.1:{port}")
        yield made


@contextmanager
def node(machine: Machine, data: Path, settings: Mapping[str, str], *options: str) -> Iterator[dict[str, int]]:
    """Both services on the machine until the block ends; the loopback ports of this machine that lead to them."""
    ports = {"distribution": free_port(), "records": free_port()}
    log = data.with_name(data.name + ".log")
    words = machine.command(*COMMAND, "serve", "--data", data, *options, settings=settings)
    with ExitStack() as stack:
        is_ready = partial(_says, log, "Stop with ctrl-C")
        stack.enter_context(serving(words, is_ready=is_ready, log=log, within_s=FIRST_START_S))
        ways = {"distribution": 8480, "records": 8080}
        pairs = [f"127.0.0.1:{ports[name]}=127.0.0.1:{port}" for name, port in ways.items()]
        _relayed(stack, machine, "--connect", machine.name, *pairs)
        yield ports


def _relayed(stack: ExitStack, machine: Machine, *words: str) -> None:
    log = Path(tempfile.gettempdir()) / f"{machine.name}-{next(_numbers)}.log"
    stack.callback(log.unlink, missing_ok=True)
    stack.enter_context(serving([*RELAY, *words], is_ready=partial(_says, log, relay.READY), log=log))


def _says(log: Path, words: str) -> bool:
    return words in log.read_text()
