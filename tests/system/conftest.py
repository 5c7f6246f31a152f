"""Fixtures of the system tests: the real binary, real sockets on loopback, ports chosen by the system.

BALANCEROUTE_BIN names another binary than build/release/bin/balanceroute, for example one with sanitizers.
"""

import contextlib
import functools
import json
import os
import pathlib
import subprocess
from collections.abc import Callable, Iterator

import pytest

import fleets
from places import ROOT
from process import Process

# Taken out of the environment, in which the binary would refuse it as a setting that it does not know.
BINARY = pathlib.Path(os.environ.pop("BALANCEROUTE_BIN", ROOT / "build/release/bin/balanceroute")).resolve()
PROCESSES = pytest.StashKey[list[Process]]()


@pytest.fixture(scope="session")
def binary() -> pathlib.Path:
    if not os.access(BINARY, os.X_OK):
        pytest.fail(f"{BINARY}: no such program; run `make build`")
    return BINARY


@pytest.fixture(scope="session")
def targets(binary, tmp_path_factory) -> Iterator[Callable[[str], fleets.Target]]:
    """targets("aggregated"): that server, with its engines, started once and kept for all tests that ask it."""
    with contextlib.ExitStack() as stack:
        yield functools.cache(lambda name: stack.enter_context(
            fleets.running(binary, tmp_path_factory.mktemp(name), name)))


@pytest.fixture(params=fleets.TARGETS)
def target(request, targets) -> fleets.Target:
    """An engine asked directly, and the router in each dialect."""
    return targets(request.param)


@pytest.fixture(params=fleets.DECODES_ALONE)
def target_that_decodes_alone(request, targets) -> fleets.Target:
    """The same without the dialects whose decode engines do nothing without a prefill engine."""
    return targets(request.param)


@pytest.fixture
def run(binary) -> Callable[..., subprocess.CompletedProcess]:
    """run("--version"): one command to its end, with its output as text."""

    def run_to_end(*arguments: object, seconds: float = 30, environment: dict[str, str] | None = None,
                   **options) -> subprocess.CompletedProcess:
        return subprocess.run([binary, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=seconds, env={**os.environ, **(environment or {})}, **options)

    return run_to_end


@pytest.fixture
def start(binary, tmp_path, request) -> Iterator[Callable[..., Process]]:
    """start("emulate", "--ranks", 2): a command that runs beside the test; returned when it has said it is ready.

    `under` are the words of a command that runs it, such as prlimit and its flags.

    At the end of the test what still runs gets SIGTERM, the newest first, and must exit with code 0.
    """
    processes: list[Process] = []
    request.node.stash[PROCESSES] = processes

    def start_process(*arguments: object, environment: dict[str, str] | None = None,
                      under: tuple[str, ...] = ()) -> Process:
        log = tmp_path / f"{len(processes)}-{arguments[0]}.log"
        process = Process([*under, str(binary), *map(str, arguments)], log, environment)
        processes.append(process)
        return process

    yield start_process

    faults = []
    for process in reversed(processes):
        if not process.is_running():
            continue  # the test ended it and has judged how
        try:
            code = process.terminate()
        except AssertionError as fault:
            faults.append(str(fault))
        else:
            if code != 0:
                faults.append(f"{process.name}: exit code {code} after SIGTERM")
    if faults:
        pytest.fail("\n".join(faults))


@pytest.fixture
def start_emulator(start) -> Callable[..., Process]:
    """start_emulator(groups=1, ranks=4, slots=8): an emulated fleet; its addresses are in `.ready`."""

    def start_emulate(**flags: object) -> Process:
        words = [word for name, value in {"base_port": 0, **flags}.items()
                 for word in (f"--{name.replace('_', '-')}", value)]
        return start("emulate", *words)

    return start_emulate


@pytest.fixture
def start_router(start, tmp_path) -> Callable[..., Process]:
    """start_router({"fleets": [...]}): a router whose `.ready` is {"listen": "127.0.0.1:PORT", "admin": ...}."""
    written = 0

    def start_serve(config: dict, **options) -> Process:
        nonlocal written
        path = tmp_path / f"router-{written}.yaml"
        written += 1
        # JSON is YAML, so no YAML library is needed here.
        path.write_text(json.dumps({"listen": "127.0.0.1:0", "admin": {"listen": "127.0.0.1:0"}, **config}, indent=2))
        return start("serve", "--config", path, **options)

    return start_serve


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds what the processes of a failed test printed to its report."""
    report = yield
    if report.failed:
        for process in item.stash.get(PROCESSES, []):
            item.add_report_section(call.when, process.name, process.output())
    return report
