"""A router under more load than its engines take while everything around it goes wrong, and then its books.

    scripts/soak --seconds 3600

Clients keep an emulated fleet of prefill and decode engines full through the router. Some leave, some read slowly, some
ask for a fault; engines restart, stall and break off, the configuration is reloaded, the router's wall clock jumps by an
hour to and fro. What happens is drawn from a seed. When it is over nothing may be left, and everything must add up:

    every request has a result or an error within its deadline, one final log line and one increment of a metric
    the tokens of an answer, which the emulator numbers, are there once each and in order
    no lease is live, no KV is stranded after its lease, the engines hold nothing
    memory, threads and descriptors of the router are where they were after its first part
    the workers of a group have done equal shares of the work

It prints what was done and every fault; the exit code is 1 if there is one.
"""

import argparse
import asyncio
import collections
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "faults"))

from places import ROOT
from process import Process
from raw_clients import read_answer
from watched_router import WatchedRouter

GROUPS, RANKS, SLOTS = 2, 4, 8
CLIENTS = GROUPS * RANKS * SLOTS * 3 // 2
LEASE_SECONDS = 2
CANCELS, SLOW_READERS, FAULTS = 0.05, 0.01, 0.01
REQUEST_FAULTS = ("reset", "refuse", "garbage", "slow:200", "stall:2", "die_mid_stream:3", "status:500", "kv_loss",
                  "kv_loss:2")
ENGINE_FAULTS = ("restart", "restart", "stall:1", "die_mid_stream:2", "reset", "status:503")
TIMEOUTS = {"admission_ms": 15_000, "first_byte_ms": 3_000, "stream_idle_ms": 1_500, "client_stall_ms": 3_000}
# All phases of a request that is tried as often as it may be, and what a busy machine adds.
DEADLINE_SECONDS = 60
EMPTY_SECONDS = 10 + 3 * LEASE_SECONDS
# What malloc keeps and a log of latencies may add; a leak of one small object a request is more than that.
GROWTH_BYTES = 6 * 1024 * 1024
WORD = re.compile(r" t(\d+)")


@dataclasses.dataclass
class Sent:
    """A request and how it ended for its client."""

    id: str
    output_tokens: int
    stream: bool
    leaves: bool = False
    fault: str | None = None  # that it asks of its engine
    status: int = 0  # 0: no answer
    whole: bool = False
    seconds: float = 0.0
    numbers: list[int] = dataclasses.field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        return self.status == 200 and self.whole

    def token_fault(self) -> str | None:
        """What is wrong with the numbers of its tokens; an answer that broke off may lack the last of them."""
        expected = list(range(1, len(self.numbers) + 1))
        if self.numbers != expected:
            return f"{self.id}: tokens {self.numbers[:8]}... are not 1 to {len(self.numbers)}, each once"
        if self.is_ok and len(self.numbers) != self.output_tokens:
            return f"{self.id}: {len(self.numbers)} tokens of {self.output_tokens}"
        return None


class Clients:
    """Asks, CLIENTS at a time, until told to stop."""

    def __init__(self, address: str, chance: random.Random):
        host, port = address.split(":")
        self._address = (host, int(port))
        self._chance = chance
        self.sent: list[Sent] = []
        self.stopped = False

    async def run(self) -> None:
        await asyncio.gather(*(self._client() for _ in range(CLIENTS)))

    async def _client(self) -> None:
        while not self.stopped:
            one = self._next()
            began = time.monotonic()
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await asyncio.wait_for(self._ask(one), DEADLINE_SECONDS)
            one.seconds = time.monotonic() - began

    def _next(self) -> Sent:
        one = Sent(f"soak-{len(self.sent)}", self._chance.randint(4, 40), self._chance.random() < 0.8)
        self.sent.append(one)
        return one

    async def _ask(self, one: Sent) -> None:
        chance = self._chance
        kind = chance.random()
        one.leaves = kind < CANCELS
        slow = CANCELS <= kind < CANCELS + SLOW_READERS
        one.fault = chance.choice(REQUEST_FAULTS) if chance.random() < FAULTS else None
        body = json.dumps({"model": "emulated", "messages": [{"role": "user", "content": "hi"}], "stream": one.stream,
                           "emulator": {"prompt_tokens": chance.randint(10, 400), "output_tokens": one.output_tokens}})
        head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: soak\r\nConnection: close\r\nX-Request-Id: {one.id}\r\n"
                + (f"X-Emulator-Fault: {one.fault}\r\n" if one.fault else "") + f"Content-Length: {len(body)}\r\n\r\n")
        connection = socket.socket()
        connection.setblocking(False)
        if slow:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        await asyncio.get_running_loop().sock_connect(connection, self._address)
        reader, writer = await asyncio.open_connection(sock=connection)
        try:
            writer.write((head + body).encode())
            await writer.drain()
            if one.leaves:
                await asyncio.sleep(chance.uniform(0, 1))  # how long this client stays
                return
            self._read(one, await self._all_of(reader, slow))
        finally:
            writer.close()

    @staticmethod
    async def _all_of(reader: asyncio.StreamReader, slow: bool) -> bytes:
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := await reader.read(200 if slow else 65536):
                received += piece
                if slow:
                    await asyncio.sleep(0.01)  # the pace of this client
        return received

    @staticmethod
    def _read(one: Sent, received: bytes) -> None:
        if b"\r\n\r\n" not in received:
            return
        answer = read_answer(received)
        one.status, one.whole = answer.status, answer.whole
        if answer.status != 200:
            return
        try:
            if one.stream:
                one.whole = one.whole and "[DONE]" in answer.events
                text = answer.text
            else:
                text = answer.json()["choices"][0]["message"]["content"]
        except ValueError:  # what an engine that sends garbage has said
            one.whole, text = False, ""
        one.numbers = [int(number) for number in WORD.findall(text)]


class Trouble:
    """Restarts engines, makes them fail and reloads the router, at moments drawn from the seed."""

    def __init__(self, engines: list[str], router: WatchedRouter, config: dict, chance: random.Random, reload_seconds: float):
        self._engines = engines
        self._router = router
        self._config = config
        self._chance = chance
        self._reload_seconds = reload_seconds
        self.done: collections.Counter[str] = collections.Counter()
        self.stopped = asyncio.Event()

    async def run(self) -> None:
        reload_at = time.monotonic() + self._reload_seconds
        while not await self._pause(self._chance.uniform(0.5, 2.5)):
            await asyncio.to_thread(self._trouble_an_engine)
            if time.monotonic() >= reload_at:
                await asyncio.to_thread(self._reload)
                reload_at = time.monotonic() + self._reload_seconds

    async def _pause(self, seconds: float) -> bool:
        """True when it is over."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopped.wait(), seconds)
        return self.stopped.is_set()

    def _trouble_an_engine(self) -> None:
        engine, fault = self._chance.choice(self._engines), self._chance.choice(ENGINE_FAULTS)
        with contextlib.suppress(OSError):  # it may be away
            if fault == "restart":
                post(f"{engine}/emulator/restart", {"down_ms": self._chance.randint(100, 400)})
            else:
                post(f"{engine}/emulator/faults", {"fault": fault, "count": 2})
            self.done[fault] += 1

    def _reload(self) -> None:
        self._config["limits"]["waiting_requests"] += 1
        write_config(self._router.process.command[-1], self._config)
        self._router.process.signal(signal.SIGHUP)
        self.done["reload"] += 1


@dataclasses.dataclass
class Reading:
    seconds: float
    resident_bytes: int
    threads: int
    descriptors: int


class Readings:
    """What the router takes of the machine, once a second."""

    def __init__(self, router: WatchedRouter):
        self._router = router
        self._began = time.monotonic()
        self.all: list[Reading] = []

    def take(self) -> Reading:
        router = self._router
        reading = Reading(time.monotonic() - self._began, router.resident_bytes(), router.threads(), router.descriptors())
        self.all.append(reading)
        return reading

    async def run(self, stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            self.take()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), 1)

    def faults(self) -> list[str]:
        """The first part, in which pools and buffers fill, is no measure."""
        settled = self.all[len(self.all) // 4:]
        third = max(1, len(settled) // 3)
        before, after = settled[:third], settled[-third:]
        found = []
        growth = statistics.median(one.resident_bytes for one in after) - statistics.median(
            one.resident_bytes for one in before)
        if growth > GROWTH_BYTES:
            found.append(f"resident memory grew by {growth / 1024:.0f} KiB, expected at most {GROWTH_BYTES // 1024}")
        if after[-1].threads != before[0].threads:
            found.append(f"{after[-1].threads} threads, expected {before[0].threads} as before")
        return found


def post(url: str, body: dict) -> None:
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), method="POST"), timeout=10).close()


def write_config(path: str, config: dict) -> None:
    """As an editor does it: whoever reads finds the old text or the new one."""
    beside = pathlib.Path(path + ".new")
    beside.write_text(json.dumps(config))
    beside.rename(path)


def config_for(engines: dict) -> dict:
    return {
        "listen": "127.0.0.1:0", "admin": {"listen": "127.0.0.1:0"}, "reload_on_change": False,
        "limits": {"waiting_requests": 10_000}, "timeouts": TIMEOUTS,
        "health": {"interval_ms": 100, "timeout_ms": 1000, "unhealthy_after": 2, "healthy_after": 1, "hold_ms": 200,
                   "longest_hold_ms": 500},
        "fleets": [{
            "dialect": "vllm_nixl",
            "groups": [{"name": f"g{number}", "slots": SLOTS, "workers": [{"url": url} for url in urls]}
                       for number, urls in enumerate(engines["groups"])],
            "prefill": {"instances": [{"url": url} for url in engines["prefill"]], "lease_ms": 1000 * LEASE_SECONDS,
                        "hold_limit_ms": 900 * LEASE_SECONDS},
        }],
    }


def jumping_clock(folder: pathlib.Path) -> dict[str, str]:
    """The environment of a process whose wall clock jumps."""
    library = folder / "jumping_clock.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, pathlib.Path(__file__).with_name("jumping_clock.c"), "-ldl"],
                   check=True)
    return {"LD_PRELOAD": str(library)}


class Soak:
    """One run: what was sent, what went wrong on purpose, and what is wrong with the books afterwards."""

    def __init__(self, binary: pathlib.Path, folder: pathlib.Path, seed: int):
        self.chance = random.Random(seed)
        self.engines = Process([str(binary), "emulate", "--base-port", "0", "--dialect", "vllm_nixl", "--groups", str(GROUPS),
                                "--ranks", str(RANKS), "--slots", str(SLOTS), "--fixed-ms", "15", "--per-token-ms", "0.001",
                                "--prefill-instances", "2", "--prefill-ranks", "4", "--prefill-fixed-ms", "2",
                                "--lease-seconds", str(LEASE_SECONDS)], folder / "engines.log")
        self.config = config_for(self.engines.ready)
        path = folder / "router.yaml"
        write_config(str(path), self.config)
        self.router = WatchedRouter(Process([str(binary), "serve", "--config", str(path)], folder / "router.log",
                                            jumping_clock(folder)))
        self.clients = Clients(self.router.listen, self.chance)
        self.readings = Readings(self.router)
        everyone = [*(url for group in self.engines.ready["groups"] for url in group), *self.engines.ready["prefill"]]
        self.everyone = everyone

    async def run(self, seconds: float) -> None:
        self.at_rest = self.readings.take()
        trouble = Trouble(self.everyone, self.router, self.config, self.chance, min(60.0, seconds / 4))
        self.trouble = trouble
        tasks = [asyncio.create_task(one) for one in
                 (self.clients.run(), trouble.run(), self.readings.run(trouble.stopped))]
        await asyncio.sleep(seconds)  # the length of the run
        trouble.stopped.set()
        self.clients.stopped = True
        await asyncio.gather(*tasks)

    def faults(self) -> list[str]:
        for engine in self.everyone:
            clear_faults(engine)
        emptied = self._wait(lambda: self.router.is_empty() and self._engines_are_empty())
        # One that left before the router looked at it may still be on its way to its final line.
        self._wait(lambda: self.router.finished() >= len(self.clients.sent))
        found = [] if emptied else [f"not empty after {EMPTY_SECONDS} s: {json.dumps(self.router.ledger())[:2000]}"]
        if self.clock_jumps() == 0:
            found.append("the router's wall clock never jumped")
        return found + self._request_faults() + self.readings.faults() + self._rest_faults() + self._share_faults()

    def _request_faults(self) -> list[str]:
        found = [fault for one in self.clients.sent if (fault := one.token_fault())]
        found += [f"{one.id}: no end within {DEADLINE_SECONDS} s" for one in self.clients.sent
                  if one.seconds >= DEADLINE_SECONDS]
        found += [f"{one.id}: an empty answer with status 200" for one in self.clients.sent
                  if one.is_ok and not one.numbers]
        lines = self.lines()
        told = collections.Counter(line["client_id"] for line in lines)
        found += [f"{one.id}: {told[one.id]} final lines, expected one" for one in self.clients.sent if told[one.id] != 1]
        if self.router.finished() != len(self.clients.sent):
            found.append(f"metrics count {self.router.finished()} requests, expected {len(self.clients.sent)}")
        outcome = {line["client_id"]: line["outcome"] for line in lines}
        found += [f"{one.id}: its client has a whole answer and its final line says {outcome[one.id]}"
                  for one in self.clients.sent if one.is_ok and outcome.get(one.id, "ok") != "ok"]
        found += [f"{one.id}: its client has status {one.status} and its final line says ok"
                  for one in self.clients.sent
                  if not one.leaves and not one.is_ok and one.fault != "garbage" and outcome.get(one.id) == "ok"]
        return found

    def _rest_faults(self) -> list[str]:
        """Idle connections to workers are kept for a while."""
        self._wait(lambda: self.router.descriptors() <= self.at_rest.descriptors + self._kept_connections())
        now = self.router.descriptors()
        allowed = self.at_rest.descriptors + self._kept_connections()
        return [] if now <= allowed else [f"{now} descriptors at rest, expected at most {allowed}"]

    def _kept_connections(self) -> int:
        """A pool shrinks only when it is used, so that many stay: one for each request that ran at a time."""
        return len(self.everyone) * (SLOTS + 2) + CLIENTS

    def _share_faults(self) -> list[str]:
        tokens: collections.Counter[str] = collections.Counter()
        for line in self.lines():
            if line["worker"] not in ("", "-"):
                tokens[f"http://{line['worker']}"] += int(line["output_tokens"])
        found = []
        for number, urls in enumerate(self.engines.ready["groups"]):
            fair = sum(tokens[url] for url in urls) / len(urls)
            shares = [tokens[url] / max(1, fair) for url in urls]
            print(f"shares of g{number}: " + ", ".join(f"{share:.3f}" for share in shares))
            allowed = 0.05 + 3 / max(1, fair) ** 0.5
            found += [f"{url} did {share:.3f} of a fair share of its group's tokens, expected 1 +- {allowed:.3f}"
                      for url, share in zip(urls, shares) if abs(share - 1) > allowed]
        return found

    def lines(self) -> list[dict[str, str]]:
        return self.router.final_lines()

    def clock_jumps(self) -> int:
        """Lines of the log that seem older than the one before by more than a minute."""
        stamps = [datetime.datetime.fromisoformat(line[:23]) for line in self.router.log().splitlines() if line[:2] == "20"]
        return sum((before - after).total_seconds() > 60 for before, after in zip(stamps, stamps[1:]))

    def _engines_are_empty(self) -> bool:
        with urllib.request.urlopen(f"{self.everyone[0]}/emulator/state", timeout=10) as state:
            return json.loads(state.read())["holds_nothing"]

    @staticmethod
    def _wait(condition) -> bool:
        end = time.monotonic() + EMPTY_SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                if condition():
                    return True
            time.sleep(0.05)
        return False

    def report(self) -> str:
        sent = self.clients.sent
        outcomes = collections.Counter(line["outcome"] for line in self.lines())
        first, last = self.readings.all[len(self.readings.all) // 4], self.readings.all[-1]
        return "\n".join([
            f"requests {len(sent)}, tokens checked {sum(len(one.numbers) for one in sent)}, "
            f"longest {max(one.seconds for one in sent):.1f} s",
            "outcomes " + ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items())),
            "trouble " + ", ".join(f"{name} {count}" for name, count in sorted(self.trouble.done.items()))
            + f", clock jumps {2 * self.clock_jumps()}",
            f"resident {first.resident_bytes / 2**20:.1f} -> {last.resident_bytes / 2**20:.1f} MiB, "
            f"threads {first.threads} -> {last.threads}, descriptors {first.descriptors} -> {last.descriptors}, "
            f"at rest {self.at_rest.descriptors} -> {self.router.descriptors()}",
        ])

    def kill(self) -> None:
        """What an error of this program has left running."""
        for process in (self.router.process, self.engines):
            if process.is_running():
                process.kill()

    def end(self) -> list[str]:
        codes = {process.name: process.terminate() for process in (self.router.process, self.engines)}
        return [f"{name}: exit code {code} after SIGTERM" for name, code in codes.items() if code != 0]


def clear_faults(engine: str) -> None:
    with contextlib.suppress(OSError):
        urllib.request.urlopen(urllib.request.Request(f"{engine}/emulator/faults", method="DELETE"), timeout=10).close()


def main() -> int:
    parser = argparse.ArgumentParser(description="Keeps a router under load while everything around it goes wrong.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary", type=pathlib.Path, help="instead of build/release/bin/balanceroute",
                        default=os.environ.pop("BALANCEROUTE_BIN", ROOT / "build/release/bin/balanceroute"))
    parser.add_argument("--keep", type=pathlib.Path, help="folder for logs, which are thrown away else")
    arguments = parser.parse_args()

    with contextlib.ExitStack() as stack:
        folder = arguments.keep or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        folder.mkdir(parents=True, exist_ok=True)
        soak = Soak(arguments.binary.resolve(), folder, arguments.seed)
        stack.callback(soak.kill)
        print(f"{arguments.seconds:.0f} s, seed {arguments.seed}: {CLIENTS} clients, {len(soak.everyone)} engines", flush=True)
        asyncio.run(soak.run(arguments.seconds))
        faults = soak.faults()
        print(soak.report())
        faults += soak.end()
    for fault in faults[:50]:
        print(f"FAULT {fault}")
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
