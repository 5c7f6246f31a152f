"""Limits on what clients take up: heads, bodies, time, connections and descriptors."""

import contextlib
import pathlib
import resource
import socket
import time

import pytest

import upstream
from fleets import wait_until

ANSWER = upstream.whole_answer(b'{"object":"list","data":[]}')


@pytest.fixture
def engine():
    recorder = upstream.RecordingEngine()
    recorder.answers = [ANSWER]
    yield recorder
    recorder.close()


def fleets(engine: upstream.RecordingEngine) -> list[dict]:
    return [{"groups": [{"name": "g", "slots": 64, "workers": [{"url": engine.url}]}]}]


def connect(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=20)


def to_end(connection: socket.socket) -> bytes:
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            answer += piece
    return answer


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


GET = b"GET /health/live HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"


def test_heads_and_bodies_are_bounded(start_router, engine):
    """Law: a head with more bytes or fields than allowed is answered 431, a longer body 413, whether it says so before or
    comes in chunks."""
    router = start_router({"limits": {"head_bytes": 4096, "head_fields": 16, "body_bytes": 4096},
                           "fleets": fleets(engine)})
    post = b"POST /v1/completions HTTP/1.1\r\nHost: test\r\n"
    cases = [(GET + b"X: " + b"x" * 5000 + b"\r\n\r\n", b"431"), (GET + b"X: " + b"x" * 5000, b"431"),
             (GET + b"X: y\r\n" * 15 + b"\r\n", b"431"), (GET + b"X: y\r\n" * 14 + b"\r\n", b"200"),
             (post + b"Content-Length: 4097\r\n\r\n", b"413"),
             (post + b"Transfer-Encoding: chunked\r\n\r\n1001\r\n", b"413")]
    for wire, status in cases:
        with connect(router.ready["listen"]) as client:
            client.sendall(wire)
            assert to_end(client).startswith(b"HTTP/1.1 " + status + b" "), wire[-60:]
    assert engine.received.empty()


def test_slow_clients_are_cut(start_router, engine):
    """Law: who sends a head or a body by drops is answered 408 when its time is over, however it keeps on."""
    router = start_router({"timeouts": {"head_ms": 400, "body_ms": 400}, "fleets": fleets(engine)})
    post = b"POST /v1/completions HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\n"
    for beginning, drop in ((GET, b"X: y\r\n"), (post, b"x")):
        with connect(router.ready["listen"]) as client:
            client.sendall(beginning)
            client.settimeout(0.05)
            began = time.monotonic()
            answer = b""
            while not answer and time.monotonic() - began < 10:
                client.sendall(drop)
                with contextlib.suppress(TimeoutError):
                    answer = client.recv(100)
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert 0.3 < time.monotonic() - began < 5


def test_connections_of_one_address_are_bounded(start_router, engine):
    """Law: above connections_per_address a connection is closed at once, and another one may come when one has ended."""
    router = start_router({"limits": {"connections_per_address": 2}, "fleets": fleets(engine)})
    address = router.ready["listen"]
    with connect(address) as first, connect(address) as second:
        for one in (first, second):
            one.sendall(GET.replace(b"Connection: close\r\n", b"") + b"\r\n")
            assert one.recv(4096).startswith(b"HTTP/1.1 200 ")
        with connect(address) as third:
            assert to_end(third) == b""

    def is_let_in() -> bool:
        with connect(address) as again, contextlib.suppress(ConnectionResetError, BrokenPipeError):
            again.sendall(GET + b"\r\n")
            return to_end(again).startswith(b"HTTP/1.1 200 ")
        return False

    wait_until(is_let_in, "a connection is let in once others have ended")


def test_descriptors_run_short(start_router, engine):
    """Law: with 256 descriptors and 1000 clients the router accepts as many as it can serve, waits without being busy,
    says so once, keeps its workers' connections, and serves the others when some have left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 1200:
        pytest.skip(f"{soft} descriptors for this test, which needs 1200")
    router = start_router({"io_threads": 1, "fleets": fleets(engine)}, under=("prlimit", "--nofile=256:256"))
    address = router.ready["listen"]
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(connect(address)) for _ in range(1000)]
        wait_until(lambda: "pausing" in router.log.read_text(), "the router says that it pauses")
        open_now = len(list(pathlib.Path(f"/proc/{router.pid}/fd").iterdir()))
        assert open_now < 200
        before = cpu_seconds(router.pid)
        began = time.monotonic()
        idle[0].sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: test\r\nContent-Length: 25\r\n\r\n" +
                        b'{"model":"m","input":"x"}')
        assert idle[0].recv(4096).startswith(b"HTTP/1.1 200 ")  # a worker's connection could be made
        while time.monotonic() - began < 1:  # a while in which a busy loop would show
            idle[0].sendall(GET.replace(b"Connection: close\r\n", b"") + b"\r\n")
            assert idle[0].recv(4096).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.1)
        assert cpu_seconds(router.pid) - before < 0.5
        assert router.log.read_text().count("pausing") == 1
        for one in idle[:950]:
            one.close()
        last = idle[-1]
        last.sendall(GET + b"\r\n")
        assert to_end(last).startswith(b"HTTP/1.1 200 ")
    wait_until(lambda: "goes on" in router.log.read_text(), "the router says that it goes on")
