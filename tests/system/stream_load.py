"""Many streams at once through a router, and the memory that each takes."""

import contextlib
import json
import pathlib
import resource
import select
import socket
import ssl
import time

from process import Process

MODEL = "m"
BODY = json.dumps({"model": MODEL, "prompt": "x" * 900, "stream": True, "max_tokens": 100_000,
                   "emulator": {"output_tokens": 100_000}}).encode()
REQUEST = (b"POST /v1/completions HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
           b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
FIRST_EVENT_SECONDS = 120
STEP_MS = 2000  # slow, so that the machine's time goes into making streams
RESERVE = 200  # descriptors beside connections


def descriptors_needed(streams: int) -> int:
    """Of the router: the client's connection and the worker's for each stream."""
    return 2 * streams + RESERVE


def descriptors_allowed() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def resident_bytes(pid: int) -> int:
    fields = pathlib.Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * resource.getpagesize()


class Streams:
    """Streams that stay open, each with its first event received."""

    def __init__(self, address: str, context: ssl.SSLContext | None = None):
        host, port = address.rsplit(":", 1)
        self._address = (host, int(port))
        self._context = context
        self._sockets: list[socket.socket] = []

    def grow_to(self, count: int) -> None:
        waiting = {}
        poll = select.poll()
        for _ in range(count - len(self._sockets)):
            connection = socket.create_connection(self._address, timeout=30)
            if self._context:
                connection = self._context.wrap_socket(connection, server_hostname=self._address[0])
            connection.sendall(REQUEST)
            self._sockets.append(connection)
            waiting[connection.fileno()] = [connection, b""]
            poll.register(connection, select.POLLIN)
        deadline = time.monotonic() + FIRST_EVENT_SECONDS
        while waiting:
            assert time.monotonic() < deadline, f"{len(waiting)} of {count} streams have no event"
            for number, _ in poll.poll(1000):
                connection, received = waiting[number]
                received += connection.recv(65536)
                assert received.startswith(b"HTTP/1.1 200 "), received
                waiting[number][1] = received
                if b"data: " in received:
                    poll.unregister(number)
                    del waiting[number]

    def close(self) -> None:
        for connection in self._sockets:
            connection.close()


@contextlib.contextmanager
def fleet(binary: pathlib.Path, folder: pathlib.Path, streams: int, tls: dict | None = None):
    """An emulated worker with a slot for each stream, and a router; yields the router."""
    with contextlib.ExitStack() as stack:
        engines = Process([str(binary), "emulate", "--base-port", "0", "--ranks", "1", "--slots", str(streams),
                           "--fixed-ms", str(STEP_MS), "--per-token-ms", "0", "--model", MODEL], folder / "emulate.log")
        stack.callback(engines.terminate)
        config = folder / "router.yaml"
        workers = [{"url": url} for url in engines.ready["groups"][0]]
        config.write_text(json.dumps({
            "listen": "127.0.0.1:0", "admin": {"listen": "127.0.0.1:0"}, "log_level": "warn", **({"tls": tls} if tls else {}),
            "fleets": [{"barrier": False, "policy": {"name": "least_tokens"},
                        "groups": [{"name": "g", "slots": streams, "workers": workers}]}]}))
        router = Process([str(binary), "serve", "--config", str(config), "--timeouts-drain-ms", "0"], folder / "serve.log")
        stack.callback(router.terminate)
        yield router


def measure(binary: pathlib.Path, folder: pathlib.Path, counts: list[int], tls: dict | None = None,
            context: ssl.SSLContext | None = None) -> list[tuple[int, int]]:
    """Streams and the router's resident bytes, for each count in rising order; base first."""
    with fleet(binary, folder, counts[-1], tls) as router:
        figures = [(0, resident_bytes(router.pid))]
        streams = Streams(router.ready["listen"], context)
        try:
            for count in counts:
                streams.grow_to(count)
                figures.append((count, resident_bytes(router.pid)))
        finally:
            streams.close()
    return figures


def slope(figures: list[tuple[int, int]]) -> float:
    """Bytes a stream between the first count and the last; the base is left out."""
    (fewer, before), (more, after) = figures[1], figures[-1]
    return (after - before) / (more - fewer)
