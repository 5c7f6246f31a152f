"""An engine that a test writes itself: keeps the bytes of what it is sent and answers with given bytes."""

import dataclasses
import queue
import socket
import ssl
import threading


@dataclasses.dataclass
class Received:
    """One request, as it came."""

    head: bytes
    body: bytes
    connection: int = 0  # its number, from 1 on

    @property
    def target(self) -> str:
        return self.head.split(b" ", 2)[1].decode()


class RecordingEngine:
    """Serves one connection at a time on a port of the system's choice until closed.

    `answers` are sent in turn, the last again and again; each is a list of pieces, sent one by one with Nagle off, so
    that the reader meets each alone where the network lets it. With a `context` it speaks TLS.
    """

    def __init__(self, context: ssl.SSLContext | None = None):
        self.server_names: list[str | None] = []  # that clients have asked for by TLS
        self._context = context
        if context:
            context.sni_callback = lambda _socket, name, _context: self.server_names.append(name)
        self._connections = 0
        self.received: queue.Queue[Received] = queue.Queue()
        self.asked: list[bytes] = []  # heads of what was only asked, with another method than POST
        self.answers: list[list[bytes]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept)
        self._acceptor.start()

    @property
    def url(self) -> str:
        scheme = "https" if self._context else "http"
        return f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(10)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections += 1
            threading.Thread(target=self._serve, args=[connection, self._connections], daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context:
            try:
                connection = self._context.wrap_socket(connection, server_side=True)
            except OSError:  # the client did not like what it saw
                connection.close()
                return
        with connection:
            buffer = b""
            while True:
                while b"\r\n\r\n" not in buffer:
                    bytes_read = connection.recv(65536)
                    if not bytes_read:
                        return
                    buffer += bytes_read
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                length = content_length(head)
                while len(buffer) < length:
                    buffer += connection.recv(65536)
                request, buffer = Received(head, buffer[:length], number), buffer[length:]
                if not request.head.startswith(b"POST"):
                    self.asked.append(request.head)
                    connection.sendall(whole_answer(b"{}")[0])  # somebody asks how the engine is
                    continue
                self.received.put(request)
                for piece in self.answers[0] if len(self.answers) == 1 else self.answers.pop(0):
                    connection.sendall(piece)


def content_length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def whole_answer(body: bytes) -> list[bytes]:
    return [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body]


def streamed_answer(pieces: list[bytes]) -> list[bytes]:
    """Each piece in a chunk of its own."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [head, *(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece), b"0\r\n\r\n"]


def ask(address: str, path: str, body: bytes) -> tuple[bytes, bytes]:
    """The head and the body (without its chunk frames) of the answer to a POST on a socket of its own."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(b"POST %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % (path.encode(), len(body)) + body)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head, _, rest = answer.partition(b"\r\n\r\n")
    return head, dechunked(rest) if b"chunked" in head.lower() else rest


def dechunked(rest: bytes) -> bytes:
    body = b""
    while True:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            return body
        body, rest = body + rest[:length], rest[length + 2:]
