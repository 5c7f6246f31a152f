"""Engines of raw sockets that do one wrong thing each, and show what the router did about it.

They speak just enough HTTP/1.1 to be asked; what an engine does right is the emulator's part.
"""

import contextlib
import json
import queue
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable

from upstream import Received, content_length, streamed_answer, whole_answer

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ROLE = b'data: {"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
LAST = b'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
ERROR = b'data: {"error":{"message":"out of memory","type":"server_error","code":500}}\n\n'
END_OF_BODY = b"0\r\n\r\n"


def token(text: str) -> bytes:
    return b'data: {"id":"x","choices":[{"index":0,"delta":{"content":%s}}]}\n\n' % json.dumps(text).encode()


def usage_event(**members) -> bytes:
    return b'data: {"id":"x","choices":[],"usage":%s}\n\n' % json.dumps(members).encode()


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def whole_chat(text: str = "hi", **members) -> bytes:
    """An answer in one piece, as it goes over the wire."""
    answer = {"id": "x", "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "text": text,
                                      "finish_reason": "stop"}],
              "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}, **members}
    return whole_answer(json.dumps(answer).encode())[0]


def whole_stream(*texts: str) -> bytes:
    return b"".join(streamed_answer([ROLE, *(token(text) for text in texts), LAST, DONE]))


class Wire:
    """One connection that the router opened to a worker."""

    def __init__(self, connection: socket.socket):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._input = b""

    def receive(self) -> Received | None:
        """The next request; none when the router has left."""
        with contextlib.suppress(OSError):
            while b"\r\n\r\n" not in self._input:
                if not self._read():
                    return None
            head, _, self._input = self._input.partition(b"\r\n\r\n")
            length = content_length(head)
            while len(self._input) < length:
                if not self._read():
                    return None
            body, self._input = self._input[:length], self._input[length:]
            return Received(head, body)
        return None

    def send(self, *pieces: bytes) -> bool:
        """Whether the router still took them."""
        try:
            for piece in pieces:
                self._connection.sendall(piece)
            return True
        except OSError:
            return False

    def until_left(self) -> None:
        """Returns when the router has closed its side, or reset the connection."""
        with contextlib.suppress(OSError):
            while self._read():
                pass

    def takes_nothing(self, seconds: float = 5) -> bool:
        """Whether bytes are answered by a reset: a peer that only shut down its sending side would take them."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            if not self.send(b" "):
                return True
        return False

    def reset(self) -> None:
        self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.close()

    def break_off(self) -> None:
        """From another thread than the one that reads."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _read(self) -> bool:
        received = self._connection.recv(65536)
        self._input += received
        return bool(received)


class RawWorker:
    """Answers every POST as `answer` does and everything else with 200, on a port of the system's choice.

    `received` has the requests in the order of their ends, `left` an entry for each connection that the router gave up
    while it was to be answered, `connections` how many there were.
    """

    def __init__(self, host: str = "127.0.0.1", backlog: int = 1024):
        self.received: list[Received] = []
        self.left: queue.Queue[Wire] = queue.Queue()
        self.connections = 0
        self._wires: set[Wire] = set()
        self._open(host, backlog)

    @property
    def port(self) -> int:
        return self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        host = self._listener.getsockname()[0]
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def answer(self, wire: Wire, request: Received) -> None:
        stream = json.loads(request.body or b"{}").get("stream", False)
        wire.send(whole_stream("hi") if stream else whole_chat())

    def page(self, request: Received) -> bytes:
        """What a GET is answered with."""
        return whole_answer(b"{}")[0]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        for wire in list(self._wires):
            wire.break_off()

    def _open(self, host: str, backlog: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=backlog)
        self._start()

    def _start(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=[Wire(connection)], daemon=True).start()

    def _serve(self, wire: Wire) -> None:
        self._wires.add(wire)
        while (request := wire.receive()) is not None:
            if request.head.startswith(b"POST"):
                self.received.append(request)
                self.answer(wire, request)
            else:
                wire.send(self.page(request))
        wire.close()
        self._wires.discard(wire)

    def has_left(self, wire: Wire) -> None:
        """Waits for the router to leave and says so."""
        wire.until_left()
        self.left.put(wire)


class Silent(RawWorker):
    """Takes a request and never answers."""

    def answer(self, wire: Wire, request: Received) -> None:
        self.has_left(wire)


class StallsAfter(RawWorker):
    """Begins a stream, sends the given events and then nothing."""

    def __init__(self, *events: bytes):
        super().__init__()
        self.events = events

    def answer(self, wire: Wire, request: Received) -> None:
        wire.send(STREAM_HEAD, *(chunk(event) for event in self.events))
        self.has_left(wire)


class BreaksAfter(StallsAfter):
    """Begins a stream, sends the given events and closes."""

    def answer(self, wire: Wire, request: Received) -> None:
        wire.send(STREAM_HEAD, *(chunk(event) for event in self.events))
        wire.close()


class LingersAfter(RawWorker):
    """Sends a whole stream up to [DONE] and never ends the body."""

    def answer(self, wire: Wire, request: Received) -> None:
        wire.send(STREAM_HEAD, *(chunk(event) for event in (ROLE, token("hi"), LAST, DONE)))
        self.has_left(wire)


class Answers(RawWorker):
    """Sends the given bytes, one answer after the other, the last again and again."""

    def __init__(self, *answers: bytes, host: str = "127.0.0.1"):
        super().__init__(host)
        self.answers = list(answers)

    def answer(self, wire: Wire, request: Received) -> None:
        wire.send(self.answers[0] if len(self.answers) == 1 else self.answers.pop(0))


class AnswersAndCloses(Answers):
    """Closes the connection after each answer, without having said so."""

    def answer(self, wire: Wire, request: Received) -> None:
        super().answer(wire, request)
        wire.close()


class SendsPieces(RawWorker):
    """Streams what `pieces_for` says of the request, each piece in a chunk of its own."""

    def __init__(self, pieces_for: Callable[[dict], Iterable[bytes]]):
        super().__init__()
        self.pieces_for = pieces_for

    def answer(self, wire: Wire, request: Received) -> None:
        wire.send(STREAM_HEAD, *(chunk(piece) for piece in self.pieces_for(json.loads(request.body)) if piece),
                  END_OF_BODY)


class Trickles(RawWorker):
    """Streams a token every `seconds` until `last` is set."""

    def __init__(self, seconds: float):
        super().__init__()
        self.seconds = seconds
        self.last = threading.Event()

    def answer(self, wire: Wire, request: Received) -> None:
        wire.send(STREAM_HEAD, chunk(ROLE))
        while not self.last.wait(self.seconds):
            if not wire.send(chunk(token("t"))):
                return
        wire.send(chunk(LAST), chunk(DONE), END_OF_BODY)


class WaitsForAcknowledgement(RawWorker):
    """Streams tokens, each only after the test has said that the one before has reached the client."""

    def __init__(self, tokens: int):
        super().__init__()
        self.tokens = tokens
        self.acknowledged = threading.Semaphore()

    def answer(self, wire: Wire, request: Received) -> None:
        wire.send(STREAM_HEAD)
        for number in range(self.tokens):
            if not self.acknowledged.acquire(timeout=10):
                return wire.close()
            wire.send(chunk(token(f"t{number}")))
        wire.send(chunk(LAST), chunk(DONE), END_OF_BODY)


class Resets(RawWorker):
    """Reads a request and resets the connection, if `when` says so of its body."""

    def __init__(self, when: Callable[[bytes], bool] = lambda body: True):
        super().__init__()
        self.when = when

    def answer(self, wire: Wire, request: Received) -> None:
        if self.when(request.body):
            return wire.reset()
        super().answer(wire, request)


class Closes(RawWorker):
    """Reads a request and closes without a byte."""

    def answer(self, wire: Wire, request: Received) -> None:
        wire.close()


class ClosesWhenReused(RawWorker):
    """Answers the first request of a connection and closes at the second without a byte."""

    def _serve(self, wire: Wire) -> None:
        first = wire.receive()
        if first is not None:
            self.received.append(first)
            self.answer(wire, first)
            wire.receive()
        wire.close()


class BreaksWhenReused(RawWorker):
    """Answers the first request of a connection, and breaks off in the head of its second answer."""

    def _serve(self, wire: Wire) -> None:
        first = wire.receive()
        if first is not None:
            self.received.append(first)
            self.answer(wire, first)
            second = wire.receive()
            if second is not None:
                self.received.append(second)
                wire.send(b"HTTP/1.1 200 OK\r\nContent-")
        wire.close()


class ClosesSoon(RawWorker):
    """Closes a connection a random moment after its answer, as one whose idle limit is that of the router."""

    def __init__(self, most_seconds: float, seed: int):
        super().__init__()
        self._most_seconds = most_seconds
        self._random = random.Random(seed)

    def answer(self, wire: Wire, request: Received) -> None:
        super().answer(wire, request)
        timer = threading.Timer(self._random.uniform(0, self._most_seconds), wire.break_off)
        timer.daemon = True
        timer.start()


class Deaf(RawWorker):
    """Listens and never accepts: connections are made by the kernel and nobody reads them."""

    def _accept(self) -> None:
        pass


class NarrowDoor(RawWorker):
    """Lets few connections wait to be accepted; answers with the length and a hash of what came."""

    def __init__(self, backlog: int):
        super().__init__(backlog=backlog)

    def answer(self, wire: Wire, request: Received) -> None:
        body = json.loads(request.body)
        wire.send(whole_chat(body["prompt"][:16] + f"/{len(body['prompt'])}"))


class SlowToTellItsHealth(Trickles):
    """Streams tokens and, once it has begun, answers GET /health only when `patience` seconds have passed."""

    def __init__(self, seconds: float, patience: float):
        super().__init__(seconds)
        self.patience = patience
        self.late_probes = 0

    def page(self, request: Received) -> bytes:
        if self.received:
            self.late_probes += 1
            self.last.wait(self.patience)
        return super().page(request)


class ComesLater(RawWorker):
    """Has its port from the start and refuses connections until `come`."""

    def come(self) -> None:
        self._listener.listen()
        self._start()

    def _open(self, host: str, backlog: int) -> None:
        self._listener = socket.socket()
        self._listener.bind((host, 0))


class ByRank(RawWorker):
    """Has the ranks 0 to `ranks` - 1 behind its port and refuses every other number."""

    def __init__(self, ranks: int, metrics: bytes = b""):
        super().__init__()
        self.ranks = ranks
        self.metrics = metrics
        self.asked: list[int] = []

    def answer(self, wire: Wire, request: Received) -> None:
        rank = rank_of(request)
        self.asked.append(rank)
        if rank not in range(self.ranks):
            body = b'{"error":{"message":"data_parallel_rank %d is out of range [0, %d)","code":400}}' % (rank, self.ranks)
            wire.send(b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                      % len(body) + body)
            return
        super().answer(wire, request)

    def page(self, request: Received) -> bytes:
        return whole_answer(self.metrics if request.target == "/metrics" else b"{}")[0]


def rank_of(request: Received) -> int:
    """The rank that the header names; -1 without one."""
    for line in request.head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"x-data-parallel-rank":
            return int(value)
    return -1


class PrefillsAs(RawWorker):
    """A prefill engine of the kind vllm_nixl: hands over a made-up object and tells the given usage."""

    def __init__(self, prompt_tokens: int, cached_tokens: int):
        super().__init__()
        self.usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 1, "total_tokens": prompt_tokens + 1,
                      "prompt_tokens_details": {"cached_tokens": cached_tokens}}

    def answer(self, wire: Wire, request: Received) -> None:
        wire.send(whole_chat("", usage=self.usage, kv_transfer_params={"do_remote_prefill": True, "remote_block_ids": [1]}))


def refusing_url() -> str:
    """An address at which nobody listens: the port was free a moment ago."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{held.getsockname()[1]}"
