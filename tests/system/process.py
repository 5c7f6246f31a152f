"""A subcommand of the binary that runs beside a test, from its ready line to its end."""

import json
import os
import pathlib
import queue
import signal
import subprocess
import threading

READY_SECONDS = 10
END_SECONDS = 15


class Process:
    """Starts a command, waits for its ready line (one JSON object, alone on the first line of stdout) and ends it.

    Standard error goes to `log`; both streams are shown when the test fails.
    """

    def __init__(self, command: list[str], log: pathlib.Path, environment: dict[str, str] | None = None):
        self.name = " ".join([pathlib.Path(command[0]).name, *command[1:2]])
        self.command = command
        self.log = log
        self.stdout_lines: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        with log.open("wb") as errors:
            self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                           env={**os.environ, **(environment or {})}, text=True, bufsize=1)
        self._reader = threading.Thread(target=self._read_stdout, daemon=True)
        self._reader.start()
        try:
            self.ready = self._read_ready_line()
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        return self._child.pid

    def next_line(self, seconds: float = READY_SECONDS) -> str:
        """The next line of stdout, without its end."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"{self.name}: no line on stdout within {seconds} s") from None
        if line is None:
            raise AssertionError(f"{self.name}: stdout ended, exit code {self._child.wait(END_SECONDS)}")
        return line

    def is_running(self) -> bool:
        return self._child.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def wait(self, seconds: float = END_SECONDS) -> int:
        """The exit code, negative after a signal."""
        code = self._child.wait(seconds)
        self._reader.join(seconds)
        return code

    def terminate(self) -> int:
        """Asks the process to end and returns its exit code; one that does not end in time is killed and is a fault."""
        if self.is_running():
            self.signal(signal.SIGTERM)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name}: still running {END_SECONDS} s after SIGTERM") from None

    def kill(self) -> None:
        self._child.kill()
        self.wait()

    def output(self) -> str:
        """What it printed, for a failure report."""
        return "\n".join([f"$ {' '.join(map(str, self.command))}", "--- stdout", *self.stdout_lines, "--- stderr",
                          self.log.read_text(errors="replace")])

    def _read_stdout(self) -> None:
        for line in self._child.stdout:
            self.stdout_lines.append(line.rstrip("\n"))
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _read_ready_line(self) -> dict:
        line = self.next_line()
        try:
            ready = json.loads(line)
        except ValueError:
            ready = None
        if not isinstance(ready, dict):
            raise AssertionError(f"{self.name}: first line {line!r}, expected one JSON object")
        return ready
