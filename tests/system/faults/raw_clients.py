"""Clients of raw sockets: they ask, read as much as a test says, and leave in every way that there is."""

import contextlib
import dataclasses
import json
import socket
import struct

from upstream import dechunked

CLIENT_SECONDS = 20
IP_BIND_ADDRESS_NO_PORT = 24  # Linux; Python has no name for it
HELLO = [{"role": "user", "content": "hi"}]
CHAT = {"model": "m", "messages": HELLO}
STREAM = {**CHAT, "stream": True}


@dataclasses.dataclass
class Answer:
    """What came until the server closed: `whole` if the body ended as its framing says it must."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool

    def json(self) -> dict:
        return json.loads(self.body)

    @property
    def error(self) -> dict:
        return self.json()["error"]

    @property
    def events(self) -> list[str]:
        """The data of each event."""
        return [event.removeprefix("data:").strip() for event in self.body.decode(errors="replace").replace("\r\n", "\n").split("\n\n")
                if event.startswith("data:")]

    @property
    def chunks(self) -> list[dict]:
        return [json.loads(event) for event in self.events if event != "[DONE]"]

    @property
    def text(self) -> str:
        return "".join(choice["delta"].get("content") or "" for chunk in self.chunks
                       for choice in chunk.get("choices", []))


class RawClient:
    """One connection to the router."""

    def __init__(self, address: str, source: str | None = None):
        host, port = address.rsplit(":", 1)
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._socket.settimeout(CLIENT_SECONDS)
        if source is not None:  # an address has some 28,000 ports for connections to one server
            self._socket.setsockopt(socket.SOL_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            self._socket.bind((source, 0))
        self._socket.connect((host.strip("[]"), int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_) -> None:
        self.leave()

    def send(self, *pieces: bytes) -> "RawClient":
        for piece in pieces:
            self._socket.sendall(piece)
        return self

    def post(self, path: str, body: dict | bytes, close: bool = True, **headers: str) -> "RawClient":
        """Asks; `close` tells the server that this is the last request, so that an answer ends with the connection."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = {"Host": "test", "Content-Type": "application/json", "Content-Length": str(len(data)),
                 **({"Connection": "close"} if close else {}),
                 **{name.replace("_", "-"): value for name, value in headers.items()}}
        head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
        return self.send(head.encode() + data)

    def read_until(self, needle: bytes) -> bytes:
        """All that came, once `needle` is in it."""
        while needle not in self.received:
            piece = self._socket.recv(65536)
            assert piece, f"the server closed before {needle!r}; it sent {self.received!r}"
            self.received += piece
        return self.received

    def answer(self) -> Answer:
        """All that comes until the server closes the connection."""
        answer = self.answer_if_any()
        assert answer, "the server closed without a word"
        return answer

    def answer_if_any(self) -> Answer | None:
        """As answer(), of a server that may have died before it said anything."""
        with contextlib.suppress(ConnectionResetError):
            while piece := self._socket.recv(65536):
                self.received += piece
        self.leave()
        return read_answer(self.received) if self.received else None

    def next_answer(self) -> Answer:
        """An answer with a stated length on a connection that stays; what follows it is kept."""
        head = self.read_until(b"\r\n\r\n").partition(b"\r\n\r\n")[0]
        end = len(head) + 4 + int(headers_of(head)["content-length"])
        while len(self.received) < end:
            piece = self._socket.recv(65536)
            assert piece, "the server closed inside an answer"
            self.received += piece
        message, self.received = self.received[:end], self.received[end:]
        return read_answer(message)

    def leave(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def reset(self) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.leave()


def headers_of(head: bytes) -> dict[str, str]:
    pairs = (line.partition(b":")[::2] for line in head.split(b"\r\n")[1:])
    return {name.decode().lower(): value.strip().decode() for name, value in pairs}


def read_answer(message: bytes) -> Answer:
    head, separator, rest = message.partition(b"\r\n\r\n")
    assert separator, f"no answer but {message!r}"
    status = int(head.split(b" ")[1])
    headers = headers_of(head)
    if "chunked" in headers.get("transfer-encoding", ""):
        whole = rest.endswith(b"0\r\n\r\n")
        return Answer(status, headers, dechunked(rest if whole else rest + b"0\r\n\r\n"), whole)
    return Answer(status, headers, rest, "content-length" not in headers or len(rest) == int(headers["content-length"]))


def ask(address: str, path: str, body: dict | bytes, **headers: str) -> Answer:
    """One request on a connection of its own."""
    return RawClient(address).post(path, body, **headers).answer()
