"""`countersign push` and `download` with a running store: they continue after a lost connection and after an
interruption, and they transfer files unchanged."""

import hashlib
import json
import os
import pty
import shlex
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from countersign.cli.output import Exit
from tests.cli.conftest import Run
from tests.servers.countersign import COMMAND, Running, environment
from tests.servers.cut import cutting_proxy

MIB = 1 << 20
BUILD_SIZE = 40 * MIB


@dataclass
class PushTarget:
    """A product that the publisher may push to, the publisher's token, and a new version for each test."""

    server: Running
    token: str
    name: str
    versions: Iterator[int]

    def new_version(self) -> str:
        """Return an unused version."""
        return f"900.0.{next(self.versions)}"


@pytest.fixture(scope="module")
def push_targets(demo_store: Running) -> Iterator[PushTarget]:
    """An iterator over the demonstration's products. Each test takes another product, because the store computes deltas
    between the builds of one product, which takes long for large builds."""
    response = httpx.get(f"{demo_store.url}/api/v1/products", params={"org": "northwind-games", "limit": 20})
    token = demo_store.token("publisher@example.com")
    names = [f"northwind-games/{item['slug']}" for item in response.json()["items"]]
    return iter([PushTarget(demo_store, token, name, iter(range(1, 1000))) for name in names])


@pytest.fixture
def push_target(push_targets: Iterator[PushTarget]) -> PushTarget:
    """A product that no other test pushes to."""
    return next(push_targets)


@pytest.fixture(scope="module")
def large_target(push_targets: Iterator[PushTarget]) -> PushTarget:
    """The product that has the large build."""
    return next(push_targets)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of BUILD_SIZE bytes."""
    path = tmp_path_factory.mktemp("build") / "game.bin"
    path.write_bytes(hashlib.shake_128(b"game").digest(MIB) * (BUILD_SIZE // MIB))
    return path


def digest(path: Path) -> str:
    """Return the file's SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_push_continues_automatically_after_a_lost_connection(run: Run, push_target: PushTarget, build: Path) -> None:
    version = push_target.new_version()
    with cutting_proxy(push_target.server.port, up_after=25 * MIB) as proxy:
        pushed_result = run(
            *("push", build, push_target.name, "--version", version, "--platform", "linux", "--publish", "--json"),
            *("--server", proxy.url),
            COUNTERSIGN_TOKEN=push_target.token,
        )

    assert pushed_result.returncode == Exit.OK, pushed_result.stderr
    assert proxy.cut_count == 1
    assert proxy.passed_bytes["up"] < BUILD_SIZE + 20 * MIB, "the bytes that the server had received are not sent again"
    output = json.loads(pushed_result.stdout)
    assert (output["sha256"], output["size"], output["published"]) == (digest(build), BUILD_SIZE, True)


def wait_for_bytes(home: dict[str, str], count: int) -> None:
    """Wait until the server has stored this many bytes of the interrupted upload, because it may still be reading
    them."""
    (upload_state_file,) = Path(home["XDG_CACHE_HOME"]).rglob("*.json")
    address = json.loads(upload_state_file.read_text())["upload_url"]
    while sum(stop - start + 1 for start, stop in httpx.get(address).json()["received"]) < count:
        time.sleep(0.05)


def test_an_interrupted_push_continues_when_run_again(
    run: Run, push_target: PushTarget, build: Path, home: dict[str, str]
) -> None:
    arguments = [
        "push",
        build,
        push_target.name,
        "--version",
        push_target.new_version(),
        "--server",
        push_target.server.url,
    ]
    variables = {**home, "COUNTERSIGN_TOKEN": push_target.token}
    with cutting_proxy(push_target.server.port, up_after=25 * MIB, stalls=True) as proxy:
        # The proxy is set by http_proxy, because the second push must use the same server address as the first one.
        first_push = subprocess.Popen(
            [*COMMAND, *arguments],
            env=environment(**variables, http_proxy=proxy.url),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while not proxy.cut_count and first_push.poll() is None:
            time.sleep(0.01)
        first_push.send_signal(signal.SIGINT)
        _, error_output = first_push.communicate()
    wait_for_bytes(home, 10 * MIB)
    with cutting_proxy(push_target.server.port) as proxy:
        second_push = run(*arguments, COUNTERSIGN_TOKEN=push_target.token, http_proxy=proxy.url)

    assert first_push.returncode == Exit.INTERRUPTED
    assert "Run the same command again" in error_output
    assert second_push.returncode == Exit.OK, second_push.stderr
    assert "already there" in second_push.stdout
    assert proxy.passed_bytes["up"] < BUILD_SIZE - 10 * MIB
    assert not list(Path(home["XDG_CACHE_HOME"]).rglob("*.json"))


def test_a_stored_file_is_not_sent_again_and_a_different_file_with_its_name_conflicts(
    run: Run, push_target: PushTarget, tmp_path: Path
) -> None:
    version, file = push_target.new_version(), tmp_path / "a.bin"
    file.write_bytes(b"one")
    command = ("push", file, push_target.name, "--version", version, "--server", push_target.server.url)

    first_result = run(*command, COUNTERSIGN_TOKEN=push_target.token)
    second_result = run(*command, COUNTERSIGN_TOKEN=push_target.token)
    file.write_bytes(b"two")
    other_result = run(*command, COUNTERSIGN_TOKEN=push_target.token)

    assert (first_result.returncode, second_result.returncode, other_result.returncode) == (
        Exit.OK,
        Exit.OK,
        Exit.CONFLICT,
    )
    assert "done, 3 B" in first_result.stdout
    assert "done" not in second_result.stdout
    assert "Push under another version" in other_result.stderr


def test_piped_output_is_plain_lines(run: Run, push_target: PushTarget, tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(b"one")
    command = (
        "push",
        file,
        push_target.name,
        "--version",
        push_target.new_version(),
        "--server",
        push_target.server.url,
    )

    result = run(*command, COUNTERSIGN_TOKEN=push_target.token)

    assert result.returncode == Exit.OK
    assert not any(character < " " and character != "\n" for character in result.stdout + result.stderr)
    assert push_target.token not in result.stdout + result.stderr


def test_on_a_terminal_a_progress_bar_is_shown(push_target: PushTarget, tmp_path: Path, home: dict[str, str]) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(b"one")
    main, terminal = pty.openpty()
    command = [
        *COMMAND,
        "push",
        file,
        push_target.name,
        "--version",
        push_target.new_version(),
        "--server",
        push_target.server.url,
    ]
    variables = environment(**home, COUNTERSIGN_TOKEN=push_target.token, TERM="xterm-256color")

    result = subprocess.run(command, env=variables, stdout=terminal, stderr=terminal, timeout=60, check=False)

    os.close(terminal)
    terminal_text = os.read(main, 65536).decode()
    os.close(main)
    assert result.returncode == Exit.OK, terminal_text
    assert "\x1b[" in terminal_text
    assert "3/3 bytes" in terminal_text


def test_a_pushed_folder_is_downloaded_complete(run: Run, push_target: PushTarget, tmp_path: Path) -> None:
    version, folder = push_target.new_version(), tmp_path / "dist"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "a.txt").write_text("a")

    pushed_result = run(
        *("push", folder, push_target.name, "--version", version, "--platform", "linux", "--publish"),
        *("--server", push_target.server.url),
        COUNTERSIGN_TOKEN=push_target.token,
    )
    fetch_result = run(
        *("download", push_target.name, "--version", version, "--json", "--server", push_target.server.url),
        COUNTERSIGN_TOKEN=push_target.token,
    )

    command = (
        "push",
        folder,
        push_target.name,
        "--version",
        version,
        "--platform",
        "linux",
        "--server",
        push_target.server.url,
    )
    second_result = run(*command, COUNTERSIGN_TOKEN=push_target.token)
    (folder / "late.txt").write_text("late")
    late_result = run(*command, COUNTERSIGN_TOKEN=push_target.token)

    assert pushed_result.returncode == fetch_result.returncode == Exit.OK, pushed_result.stderr + fetch_result.stderr
    assert late_result.returncode == Exit.CONFLICT
    assert f"{version} is published already" in late_result.stderr
    assert second_result.returncode == Exit.OK
    assert f"{version} (published)" in second_result.stdout
    with tarfile.open(tmp_path / json.loads(fetch_result.stdout)["path"]) as archive:
        assert archive.getnames() == ["lib", "lib/a.txt"]


@pytest.fixture(scope="module")
def published_version(large_target: PushTarget, build: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The version of a published release that has the build."""
    version, cache = large_target.new_version(), tmp_path_factory.mktemp("cache")
    command = [
        *COMMAND,
        "push",
        build,
        large_target.name,
        "--version",
        version,
        "--publish",
        "--server",
        large_target.server.url,
    ]
    variables = environment(COUNTERSIGN_TOKEN=large_target.token, XDG_CACHE_HOME=str(cache))
    subprocess.run(command, env=variables, capture_output=True, check=True)
    return version


def test_a_download_whose_connection_is_cut_continues(
    run: Run, large_target: PushTarget, build: Path, published_version: str, tmp_path: Path
) -> None:
    with cutting_proxy(large_target.server.port, down_after=25 * MIB) as proxy:
        result = run(
            *("download", large_target.name, "--version", published_version, "-o", "got.bin", "--server", proxy.url),
            COUNTERSIGN_TOKEN=large_target.token,
        )

    assert result.returncode == Exit.OK, result.stderr
    assert proxy.cut_count == 1
    assert proxy.passed_bytes["down"] < BUILD_SIZE + 5 * MIB, (
        "the bytes that had been downloaded are not downloaded again"
    )
    assert digest(tmp_path / "got.bin") == digest(build)
    assert not (tmp_path / "got.bin.part").exists()


def test_a_partial_file_of_an_earlier_run_is_completed(
    run: Run, large_target: PushTarget, build: Path, published_version: str, tmp_path: Path
) -> None:
    (tmp_path / "got.bin.part").write_bytes(build.read_bytes()[: 30 * MIB])
    with cutting_proxy(large_target.server.port) as proxy:
        result = run(
            *("download", large_target.name, "--version", published_version, "-o", "got.bin", "--server", proxy.url),
            COUNTERSIGN_TOKEN=large_target.token,
        )

    assert result.returncode == Exit.OK, result.stderr
    assert proxy.passed_bytes["down"] < 12 * MIB
    assert digest(tmp_path / "got.bin") == digest(build)


def download_command(target: PushTarget, version: str) -> tuple[str, ...]:
    """Return the command that downloads the version into got.bin."""
    return "download", target.name, "--version", version, "-o", "got.bin", "--server", target.server.url


def test_a_partial_file_with_different_content_is_downloaded_again(
    run: Run, large_target: PushTarget, build: Path, published_version: str, tmp_path: Path
) -> None:
    (tmp_path / "got.bin.part").write_bytes(b"x" * MIB)

    result = run(*download_command(large_target, published_version), COUNTERSIGN_TOKEN=large_target.token)

    assert result.returncode == Exit.OK, result.stderr
    assert digest(tmp_path / "got.bin") == digest(build)


def test_an_existing_file_with_different_content_is_not_overwritten(
    run: Run, large_target: PushTarget, published_version: str, tmp_path: Path
) -> None:
    (tmp_path / "got.bin").write_bytes(b"mine")
    command = download_command(large_target, published_version)

    kept_result = run(*command, COUNTERSIGN_TOKEN=large_target.token)
    forced_result = run(*command, "--force", COUNTERSIGN_TOKEN=large_target.token)

    assert kept_result.returncode == Exit.CONFLICT
    assert forced_result.returncode == Exit.OK


def test_a_download_of_a_missing_release_exits_with_code_3(run: Run, push_target: PushTarget) -> None:
    no_product = run("download", "northwind-games/none", "--server", push_target.server.url)
    no_release = run("download", push_target.name, "--version", "0.0.0-none", "--server", push_target.server.url)
    slug = push_target.name.partition("/")[2]
    other_org = run("download", f"toolsmith/{slug}", "--server", push_target.server.url)

    assert [result.returncode for result in (no_product, no_release, other_org)] == [Exit.NOT_FOUND] * 3
    assert push_target.name in other_org.stderr


def test_a_release_of_another_publisher_is_refused(run: Run, push_target: PushTarget, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    command = ("push", "a", push_target.name, "--version", "1.0.0-mine", "--server", push_target.server.url)

    anonymous = run(*command)
    customer = run(*command, COUNTERSIGN_TOKEN=push_target.server.token("player@example.com"))

    assert anonymous.returncode == Exit.REFUSED
    assert customer.returncode in (Exit.REFUSED, Exit.NOT_FOUND)


def test_a_push_to_a_missing_product_names_the_command_that_creates_the_product(
    run: Run, push_target: PushTarget, tmp_path: Path
) -> None:
    file = tmp_path / "tool.bin"
    file.write_bytes(b"a tool")
    command = ["push", str(file), "northwind-games/brand-new", "--version", "1.0.0", "--no-build"]
    push_settings = {"COUNTERSIGN_TOKEN": push_target.token, "COUNTERSIGN_SERVER": push_target.server.url}

    missing_result = run(*command, **push_settings)
    remedy = next(line for line in missing_result.stderr.splitlines() if line.startswith("Next:"))
    created_result = run(*shlex.split(remedy.partition("countersign ")[2]), **push_settings)
    pushed_result = run(*command, **push_settings)

    assert missing_result.returncode == Exit.NOT_FOUND
    assert "the organisation northwind-games has no product brand-new" in missing_result.stderr
    assert created_result.returncode == pushed_result.returncode == Exit.OK, (
        created_result.stderr + pushed_result.stderr
    )


def test_a_build_of_one_file_is_reported_in_the_singular(run: Run, push_target: PushTarget, tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "only.txt").write_text("alone")

    pushed_result = run(
        *("push", folder, push_target.name, "--version", push_target.new_version(), "--server", push_target.server.url),
        COUNTERSIGN_TOKEN=push_target.token,
    )

    assert pushed_result.returncode == Exit.OK, pushed_result.stderr
    assert "Build of 1 file, 5 B, " in pushed_result.stderr
