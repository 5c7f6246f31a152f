"""Fixtures of the fault rig: workers that misbehave, and a router before them."""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from raw_workers import RawWorker
from watched_router import WatchedRouter

SLOTS = 4
# Workers are taken for healthy at the start and judged by requests alone, so that a test sees nothing but its own.
NO_PROBES = {"interval_ms": 0}
# And of one try, or what a worker does wrong would often not be seen.
NO_RETRIES = {"most": 0}


@pytest.fixture
def worker() -> Iterator[Callable[..., RawWorker]]:
    """worker(Silent): one that runs until the end of the test."""
    with contextlib.ExitStack() as stack:
        def start(kind: type[RawWorker], *arguments, **options) -> RawWorker:
            started = kind(*arguments, **options)
            stack.callback(started.close)
            return started

        yield start


@pytest.fixture
def route(start_router) -> Callable[..., WatchedRouter]:
    """route(one, other, slots=1, timeouts={...}): a router before one group of these workers, or their addresses.

    `fleet` and `group` are more settings of those, other words are sections of the configuration. `under` is a command
    that runs the router.
    """

    def start(*workers: RawWorker | str, slots: int = SLOTS, fleet: dict | None = None, group: dict | None = None,
              under: tuple[str, ...] = (), **sections) -> WatchedRouter:
        urls = [worker if isinstance(worker, str) else worker.url for worker in workers]
        config = {"health": NO_PROBES, "retries": NO_RETRIES, **sections, "fleets": [{
            "policy": {"name": "join_shortest_queue"}, **(fleet or {}),
            "groups": [{"name": "g", "slots": slots, "workers": [{"url": url} for url in urls], **(group or {})}]}]}
        return WatchedRouter(start_router(config, under=under))

    return start


@pytest.fixture
def emulated(start_emulator, route) -> Callable[..., tuple]:
    """emulated(ranks=2, dialect="vllm_nixl", prefill_instances=1): an emulated fleet, and a router before it."""

    def start(ranks: int = 2, slots: int = SLOTS, router: dict | None = None, **flags):
        engines = start_emulator(ranks=ranks, slots=slots, **{"fixed_ms": 2, "per_token_ms": 0, **flags})
        settings = {**(router or {})}
        fleet = {"dialect": flags.get("dialect", "aggregated"), **settings.pop("fleet", {})}
        if engines.ready["prefill"]:
            instances = [{"url": url} for url in engines.ready["prefill"]]
            for instance, bootstrap in zip(instances, engines.ready["bootstrap"]):
                instance["bootstrap_port"] = int(bootstrap.rsplit(":", 1)[1])
            lease_ms = 1000 * flags.get("lease_seconds", 30)
            fleet["prefill"] = {"instances": instances, "lease_ms": lease_ms, "hold_limit_ms": lease_ms / 2}
        return engines, route(*engines.ready["groups"][0], slots=slots, fleet=fleet, **settings)

    return start
