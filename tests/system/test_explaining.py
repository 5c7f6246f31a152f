"""What the router tells of itself to commands and collectors: its state to `explain`, its steps to `calibrate`, its log
lines as JSON, its spans."""

import contextlib
import http.server
import json
import re
import threading
import urllib.request

import pytest

from process import Process


def fleet(start_emulator, start_router, policy: str = "br_0", **settings) -> Process:
    """A router with a group of three emulated workers."""
    engines = start_emulator(ranks=3, slots=8, fixed_ms=2, per_token_ms=1e-4).ready
    workers = [{"url": url} for url in engines["groups"][0]]
    return start_router({"fleets": [{"policy": {"name": policy}, "groups": [
        {"name": "g", "slots": 8, "workers": workers}]}], **settings})


def ask(router: Process, tokens: int = 20, **headers: str) -> None:
    body = json.dumps({"model": "emulated", "prompt": [1] * 50, "max_tokens": tokens, "stream": True}).encode()
    request = urllib.request.Request(f"http://{router.ready['listen']}/v1/completions", body,
                                     {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert b"[DONE]" in answer.read()


def admin(router: Process, path: str) -> str:
    with urllib.request.urlopen(f"http://{router.ready['admin']}{path}", timeout=10) as answer:
        return answer.read().decode()


@contextlib.contextmanager
def running(router: Process, count: int):
    """So many endless requests, of different sizes."""
    with contextlib.ExitStack() as stack:
        for i in range(count):
            body = json.dumps({"model": "emulated", "prompt": [1] * (100 * (i + 1)), "max_tokens": 100_000,
                               "stream": True}).encode()
            request = urllib.request.Request(f"http://{router.ready['listen']}/v1/completions", body,
                                             {"Content-Type": "application/json"})
            answer = stack.enter_context(urllib.request.urlopen(request, timeout=20))
            assert answer.readline().startswith(b"data: ")
        yield


def test_a_snapshot_of_a_running_fleet_is_explained(start_emulator, start_router, run, tmp_path):
    router = fleet(start_emulator, start_router)
    with running(router, 7):
        snapshot = json.loads(admin(router, "/debug/snapshot"))
    held = [running for worker in snapshot["groups"][0]["workers"] for running in worker["running"]]
    assert sorted(one["prompt"] for one in held) == [100 * (i + 1) for i in range(7)]
    snapshot["waiting"] = [{"prompt": 900}, {"prompt": 20}]
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(snapshot))
    for policy in ("br_0", "least_tokens", "br_fit"):
        told = run("explain", "--snapshot", file, "--policy", policy, "--json", "-")
        assert told.returncode == 0, told.stderr
        found = json.loads(told.stdout)
        loads = [sum((one["prompt"] + one["generated"]) * one["sequences"] for one in worker["running"])
                 for worker in snapshot["groups"][0]["workers"]]
        assert [worker["load_tokens"] for worker in found["workers"]] == loads
        assert found["policy"] == policy
        assert sorted(one["waiting"] for one in found["admissions"]) == [0, 1]
        first = next(one for one in found["admissions"] if one["waiting"] == 0)
        assert first["worker"] == loads.index(min(loads))  # the large one goes where the most room is
    assert "The round decides:" in run("explain", "--snapshot", file).stdout


def test_explain_refuses_what_it_does_not_know(run, tmp_path):
    file = tmp_path / "snapshot.json"
    file.write_text('{"groups": [{"workers": [{"url": "http://a", "slots": 1, "runing": []}]}]}')
    told = run("explain", "--snapshot", file)
    assert told.returncode == 2
    assert "running" in told.stderr and str(file) in told.stderr
    assert run("explain", "--snapshot", tmp_path / "nothing").returncode == 2


def test_steps_of_a_running_fleet_are_calibrated(start_emulator, start_router, run, tmp_path):
    router = fleet(start_emulator, start_router)
    with running(router, 6):
        rows: list[str] = []
        for _ in range(40):
            ask(router, 30)  # the fleet steps meanwhile
            rows = admin(router, "/debug/steps").splitlines()
            if len(rows) > 30:
                break
    assert rows[0] == "fleet,group,step_ms,max_tokens,sequences,total_tokens"
    assert len(rows) > 30
    assert all(re.fullmatch(r'"default","g",\d+\.\d+,\d+\.\d,\d+\.\d+,\d+\.\d', row) for row in rows[1:])
    file = tmp_path / "steps.csv"
    file.write_text("\n".join(rows) + "\n")
    told = run("calibrate", "--steps", file, "--json", "-")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["steps"] == len(rows) - 1


def test_log_lines_are_json(start_emulator, start_router):
    router = fleet(start_emulator, start_router, log_format="json")
    ask(router)
    router.terminate()
    lines = [json.loads(line) for line in router.output().splitlines() if line.startswith('{"time"')]
    assert not [line for line in router.output().splitlines() if " serve: " in line]
    (request,) = [line for line in lines if line["message"] == "request"]
    assert request["status"] == 200 and request["outcome"] == "ok" and request["output_tokens"] == 20
    assert request["prefill_ms"] is None
    assert 0 < request["ttft_ms"] <= request["e2e_ms"]
    assert re.fullmatch("[0-9a-f]{32}", request["trace"])


class Collector(http.server.ThreadingHTTPServer):
    """Keeps the spans it is sent."""

    def __init__(self):
        spans = self.spans = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                spans.extend(body["resourceSpans"][0]["scopeSpans"][0]["spans"])
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def collector():
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_spans_reach_a_collector(start_emulator, start_router, collector):
    router = fleet(start_emulator, start_router,
                   tracing={"otlp_endpoint": f"http://127.0.0.1:{collector.server_port}"})
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    ask(router, traceparent=f"00-{trace}-00f067aa0ba902b7-01")
    assert router.terminate() == 0  # sends what is left
    assert sorted(span["name"] for span in collector.spans) == ["POST /v1/completions", "decode", "pool wait"]
    assert {span["traceId"] for span in collector.spans} == {trace}
    whole = next(span for span in collector.spans if span["name"].startswith("POST"))
    for span in collector.spans:
        assert int(whole["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert int(span["endTimeUnixNano"]) <= int(whole["endTimeUnixNano"])


def test_a_collector_with_another_scheme_is_refused(run, tmp_path):
    file = tmp_path / "router.yaml"
    file.write_text("fleets: [{groups: [{name: g, slots: 1, workers: [{url: 'http://127.0.0.1:1'}]}]}]\n"
                    "tracing: {otlp_endpoint: 'grpc://127.0.0.1:4317'}\n")
    told = run("config", "check", "--config", file)
    assert told.returncode == 2
    assert "tracing.otlp_endpoint" in told.stderr and "grpc://127.0.0.1:4317" in told.stderr
