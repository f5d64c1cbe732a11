"""A confined process writes only below its folder, reads little, has no network, and ends with its parent."""

import os
import platform
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from countersign.archives import confinement
from countersign.archives.confinement import UNPRIVILEGED_ID

needs_landlock = pytest.mark.skipif(
    confinement.landlock_version() < confinement.LANDLOCK_FILES, reason="the kernel has no Landlock"
)
needs_network_rules = pytest.mark.skipif(
    confinement.landlock_version() < confinement.LANDLOCK_NETWORK, reason="Landlock without TCP here"
)

ENTER = """
import os, resource, socket, subprocess, sys
from pathlib import Path
from countersign.archives import confinement
got = confinement.confine(folder=Path(), memory_bytes=1 << 30, cpu_s=int(sys.argv[1]))
def tried(act):
    try:
        return act()
    except OSError as error:
        return type(error).__name__
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that the confined process may write to, even after it gives up root."""
    work_folder = tmp_path / "work"
    work_folder.mkdir()
    if os.geteuid() == 0:
        os.chown(work_folder, UNPRIVILEGED_ID, UNPRIVILEGED_ID)
    return work_folder


def run_confined(folder: Path, code: str, cpu_s: int = 20) -> subprocess.CompletedProcess[str]:
    """Run the code in a process that first confines itself to the folder, and return the ended process."""
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-P", "-c", ENTER + textwrap.dedent(code), str(cpu_s)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def confined_output(folder: Path, code: str) -> str:
    """Return the output of the code in a process that first confined itself to the folder."""
    process = run_confined(folder, code)
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def test_a_confined_process_writes_below_its_folder(folder: Path) -> None:
    code = "os.mkdir('a'); Path('a/b').write_text('x'); os.symlink('b', 'a/l'); os.rename('a', 'c'); print(got)"

    result = confined_output(folder, code)

    assert "bounded=True" in result
    assert (folder / "c/b").read_text() == "x"


@needs_landlock
def test_a_confined_process_reads_and_writes_only_its_folder(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    tmp_path.chmod(0o777)
    secret.chmod(0o666)

    code = f"""
    print(tried(lambda: open({str(secret)!r}).read()), tried(lambda: open({str(secret)!r}, "w")),
          tried(lambda: open({str(tmp_path / "new")!r}, "w")), tried(lambda: os.listdir("/")),
          tried(lambda: os.open("/etc/passwd", os.O_RDONLY)), tried(lambda: os.mkfifo("pipe")))
    """

    assert set(confined_output(folder, code).split()) == {"PermissionError"}
    assert secret.read_text() == "secret"


FAMILIES = ("AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET", "AF_VSOCK")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64", "riscv64"), reason="another machine's numbers")
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_RAW"])
def test_a_confined_process_cannot_create_a_socket(folder: Path, family: str, kind: str) -> None:
    code = f"print(tried(lambda: socket.socket(socket.{family}, socket.{kind})), got.network)"

    assert confined_output(folder, code) == "PermissionError True"


@needs_network_rules
def test_a_confined_process_cannot_reach_a_server(folder: Path) -> None:
    code = "print(tried(lambda: socket.socket().connect(('127.0.0.1', 9))))"

    assert confined_output(folder, code) == "PermissionError"


def test_a_confined_process_has_no_root_rights_and_cannot_regain_them(folder: Path) -> None:
    code = """
    print(0 in (*os.getresuid(), *os.getresgid()), os.getgroups() if got.unprivileged else "root",
          tried(lambda: os.setuid(0)), got.no_new_rights)
    """
    result = confined_output(folder, code)

    if os.geteuid() == 0:
        assert result == "False [] PermissionError True"


def test_memory_and_time_are_bounded(folder: Path) -> None:
    code = """
    try:
        bytes(2 << 30)
    except MemoryError:
        print("no memory", resource.getrlimit(resource.RLIMIT_CPU), resource.getrlimit(resource.RLIMIT_CORE))
    """

    assert confined_output(folder, code) == "no memory (20, 21) (0, 0)"


def test_a_process_at_its_cpu_limit_is_ended_by_sigxcpu(folder: Path) -> None:
    assert run_confined(folder, "while True: pass", cpu_s=1).returncode == -signal.SIGXCPU


def test_a_confined_process_ends_with_its_parent(folder: Path) -> None:
    inner = ENTER + "print(os.getpid(), flush=True)\nimport signal\nsignal.pause()\n"
    outer = f"import subprocess, sys; subprocess.Popen([sys.executable, '-P', '-c', {inner!r}, '20']).wait()"
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    parent = subprocess.Popen(
        [sys.executable, "-P", "-c", outer], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())

    parent.send_signal(signal.SIGKILL)
    parent.wait()

    # The pipe that both wrote to ends when the last of them has ended.
    assert parent.stdout.read() == ""
    parent.stdout.close()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and Path(f"/proc/{child}/exe").exists():
        time.sleep(0.05)
    assert not Path(f"/proc/{child}/exe").exists()
