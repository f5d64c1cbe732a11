"""How this process is: memory, files, processor time, and how late its event loop comes to what is due."""

import asyncio
import os
import platform
import resource
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from countersign import __version__
from countersign.kernel import clock, metrics
from countersign.kernel.beside import beside

EVERY_S = 0.5

MEMORY = metrics.gauge("process_resident_memory_bytes", "Memory of the process that is in RAM, in bytes.")
FILES = metrics.gauge("process_open_fds", "Open files and connections of the process.")
MAX_FILES = metrics.gauge("process_max_fds", "How many files and connections the process may have.")
PROCESSOR = metrics.counter("process_cpu_seconds_total", "Processor time of the process, in seconds.")
STARTED = metrics.gauge("process_start_time_seconds", "When the process began to serve, in seconds since 1970.")
LAG = metrics.histogram("countersign_loop_lag_seconds", "How late the event loop came to what was due.")
BUILD = metrics.gauge("countersign_build_info", "1; the labels tell what is running.", "version", "python")


@asynccontextmanager
async def watched() -> AsyncGenerator[None]:
    """While the block lasts, the lag of the event loop is looked at twice a second."""
    STARTED.of().value = clock.now() / clock.SECOND
    BUILD.of(__version__, platform.python_version()).value = 1
    async with beside(_watch()):
        yield


async def _watch() -> None:
    lag = LAG.of()
    while True:
        due_s = clock.monotonic_s() + EVERY_S
        await asyncio.sleep(EVERY_S)
        lag.add(max(0.0, clock.monotonic_s() - due_s))


def look() -> None:
    """Bring what is only known when it is asked for up to date."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    PROCESSOR.of().value = used.ru_utime + used.ru_stime
    MAX_FILES.of().value = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    # Linux alone tells these.
    with suppress(OSError):
        pages = Path("/proc/self/statm").read_text().split()[1]
        MEMORY.of().value = int(pages) * os.sysconf("SC_PAGE_SIZE")
        FILES.of().value = len(os.listdir("/proc/self/fd"))
