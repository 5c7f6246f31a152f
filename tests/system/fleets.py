"""Emulated fleets for many tests: one engine asked directly, and the same engines behind the router, by dialect."""

import contextlib
import json
import pathlib
import time
import urllib.request
from collections.abc import Callable, Iterator

from process import Process

RANKS = 2
SLOTS = 8
LEASE_SECONDS = 1
DIRECT = "direct"
# What the router speaks to engines. A dialect is added by its name.
DIALECTS = ("aggregated", "vllm_nixl", "ascend_mooncake", "vllm_mooncake", "ascend_layerwise", "sglang")
TARGETS = (DIRECT, *DIALECTS)
# In whose fleets a decode worker serves requests that no prefill engine can help with: all but SGLang's.
DECODES_ALONE = tuple(name for name in TARGETS if name != "sglang")


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 10.0) -> float:
    """Seconds until the condition held; fails the test if it never does."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"within {seconds} s: expected that {what}"
        time.sleep(0.002)
    return time.monotonic() - began


class Target:
    """A server that clients ask, with the emulated engines behind it (or that it is)."""

    def __init__(self, name: str, url: str, engines: Process, router: Process | None):
        self.name = name
        self.url = url
        self.model = engines.ready["model"]
        self._engines = engines
        self._router = router

    def state(self) -> dict:
        return json.loads(fetch(f"{self._engines.ready['groups'][0][0]}/emulator/state"))

    def relay_faults(self) -> int:
        """What the engines found wrong in what the router relayed."""
        return json.loads(fetch(f"{self._engines.ready['groups'][0][0]}/emulator/stats"))["kv"]["relay_faults"]

    def final_lines(self) -> int:
        """Requests whose end the router has logged."""
        return self._router.log.read_text().count(" serve: request id=")

    def is_empty(self) -> bool:
        """Whether the engines run nothing and hold no KV, and the router's ledger has no lease."""
        if not self.state()["holds_nothing"]:
            return False
        if self._router is None:
            return True
        ledger = json.loads(fetch(f"http://{self._router.ready['admin']}/debug/ledger"))["fleets"][0]
        if not ledger["leases_live"] == ledger["requests_live"] == ledger["requests_waiting"] == 0:
            return False
        instances = ledger.get("prefill", {}).get("instances", [])
        return all(instance[tokens] == 0 for instance in instances
                   for tokens in ("computing_tokens", "held_tokens", "stranded_tokens"))

    def runs_something(self) -> bool:
        return any(rank["running"] > 0 for rank in self.state()["ranks"])


def engine_flags(dialect: str) -> list[str]:
    flags = {"base-port": 0, "ranks": RANKS, "slots": SLOTS, "fixed-ms": 2, "per-token-ms": 0, "dialect": dialect,
             "lease-seconds": LEASE_SECONDS}
    if dialect != "aggregated":
        flags["prefill-instances"] = 2
    return [word for name, value in flags.items() for word in (f"--{name}", str(value))]


def fleet_config(dialect: str, engines: dict) -> dict:
    fleet = {"dialect": dialect,
             "groups": [{"name": "g", "slots": SLOTS, "workers": [{"url": url} for url in engines["groups"][0]]}]}
    if engines["prefill"]:
        instances = [{"url": url} for url in engines["prefill"]]
        for instance, bootstrap in zip(instances, engines["bootstrap"]):
            instance["bootstrap_port"] = int(bootstrap.rsplit(":", 1)[1])
        fleet["prefill"] = {"instances": instances, "lease_ms": 1000 * LEASE_SECONDS, "hold_limit_ms": 500}
        if dialect == "sglang":
            fleet["prefill"]["on_prefill_loss"] = "503"  # its decode engines serve nothing alone
    return fleet


@contextlib.contextmanager
def running(binary: pathlib.Path, logs: pathlib.Path, name: str) -> Iterator[Target]:
    """The target of that name, until the end of the block; every process must end well."""
    with contextlib.ExitStack() as stack:
        def start(*arguments: str) -> Process:
            process = Process([str(binary), *arguments], logs / f"{name}-{arguments[0]}.log")
            stack.callback(end, process)
            return process

        dialect = "aggregated" if name == DIRECT else name
        engines = start("emulate", *engine_flags(dialect))
        if name == DIRECT:
            yield Target(name, engines.ready["groups"][0][0], engines, None)
            return
        config = logs / f"{name}.yaml"
        config.write_text(json.dumps({"listen": "127.0.0.1:0", "admin": {"listen": "127.0.0.1:0"},
                                      "fleets": [fleet_config(dialect, engines.ready)]}))
        router = start("serve", "--config", str(config))
        yield Target(name, f"http://{router.ready['listen']}", engines, router)


def end(process: Process) -> None:
    code = process.terminate()
    assert code == 0, f"exit code {code} after SIGTERM\n{process.output()}"
