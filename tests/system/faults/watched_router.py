"""The router as its operator sees it: final lines, metrics, the ledger, and what the process takes of the machine."""

import json
import os
import pathlib
import re
import urllib.error
import urllib.request

from fleets import fetch
from process import Process

FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)')
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class WatchedRouter:
    """A running `balanceroute serve`."""

    def __init__(self, process: Process):
        self.process = process
        self.listen: str = process.ready["listen"]
        self.admin = f"http://{process.ready['admin']}"

    def log(self) -> str:
        return self.process.log.read_text()

    def final_lines(self) -> list[dict[str, str]]:
        """The fields of the last line of each request."""
        lines = (line for line in self.log().splitlines() if " serve: request id=" in line)
        return [{name: value.strip('"') for name, value in FIELD.findall(line)} for line in lines]

    def outcomes(self) -> list[str]:
        return [line["outcome"] for line in self.final_lines()]

    def samples(self) -> list[tuple[str, dict[str, str], float]]:
        return [(name, dict(LABEL.findall(labels)), float(value))
                for name, labels, value in SAMPLE.findall(fetch(f"{self.admin}/metrics"))]

    def metric(self, name: str, **labels: str) -> float:
        """The sum of the samples that have these labels."""
        return sum(value for sample, having, value in self.samples()
                   if sample == name and labels.items() <= having.items())

    def finished(self, outcome: str | None = None) -> int:
        """Requests that metrics count as ended."""
        return int(self.metric("balanceroute_request_finished_total", **({"outcome": outcome} if outcome else {})))

    def ledger(self) -> dict:
        return json.loads(fetch(f"{self.admin}/debug/ledger"))["fleets"][0]

    def is_empty(self) -> bool:
        ledger = self.ledger()
        if not ledger["leases_live"] == ledger["requests_live"] == ledger["requests_waiting"] == 0:
            return False
        return all(instance[tokens] == 0 for instance in ledger.get("prefill", {}).get("instances", [])
                   for tokens in ("computing_tokens", "held_tokens", "stranded_tokens"))

    def workers(self) -> dict[str, dict]:
        """By URL; of several ranks behind one the last."""
        return {worker["url"]: worker for worker in json.loads(fetch(f"{self.admin}/workers"))["workers"]}

    def is_ready(self) -> bool:
        try:
            fetch(f"http://{self.listen}/health/ready")
            return True
        except OSError:
            return False

    def command(self, method: str, path: str, body: dict | None = None) -> int:
        """The status of an answer of the admin listener."""
        data = json.dumps(body).encode() if body is not None else None
        try:
            with urllib.request.urlopen(urllib.request.Request(self.admin + path, data, method=method), timeout=10) as answer:
                return answer.status
        except urllib.error.HTTPError as answer:
            return answer.code

    def resident_bytes(self) -> int:
        return self._status("VmRSS") * 1024

    def threads(self) -> int:
        return self._status("Threads")

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_seconds(self) -> float:
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _status(self, name: str) -> int:
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)[1])
