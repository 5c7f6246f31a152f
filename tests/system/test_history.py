"""The history of finished requests: through kills and locks, and into what learns from it."""

import json
import pathlib
import sqlite3
import subprocess

import pytest

import fleets
from places import ROOT

TRACE = ROOT / "examples/traces/azure2023_conv_segment.csv"
PROBES = 1  # requests that `replay` sends before those of its trace


@pytest.fixture
def start_recording(start_emulator, start_router, tmp_path):
    """start_recording(): a router in front of two ranks that keeps its history in tmp_path/history.db."""
    engines = start_emulator(ranks=2, slots=32, fixed_ms=1, per_token_ms=0).ready
    workers = [{"url": url} for url in engines["groups"][0]]

    def start(policy: str = "br_h", **history: object):
        return start_router({"fleets": [{"policy": {"name": policy},
                                         "groups": [{"name": "g", "slots": 32, "workers": workers}]}],
                             "history": {"path": str(tmp_path / "history.db"), **history}})

    return start


@pytest.fixture
def replay(run, binary):
    """replay(router, 50): so many requests of a real trace, as fast as they go; replay(router) goes on beside the test."""
    beside = []

    def words(router, *more: object) -> list[str]:
        return [str(word) for word in ("replay", "--url", f"http://{router.ready['listen']}", "--trace", TRACE, "--rate-per-s",
                                       150, "--length-member", "emulator", *more)]

    def start(router, limit: int | None = None) -> None:
        if limit is not None:
            done = run(*words(router, "--limit", limit))
            assert done.returncode == 0, done.stderr
            return
        beside.append(subprocess.Popen([binary, *words(router)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL))

    yield start
    for process in beside:
        process.terminate()
        process.wait(10)


def metric(router, name: str) -> float:
    page = fleets.fetch(f"http://{router.ready['admin']}/metrics")
    return next(float(line.split()[1]) for line in page.splitlines() if line.startswith(name + " "))


def rows(path: pathlib.Path) -> int:
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return database.execute("SELECT count(*) FROM requests").fetchone()[0]


def test_what_was_written_outlives_a_kill(start_recording, replay, tmp_path):
    """Law: after SIGKILL under load every row that was counted as written is there and the file is whole; the next router
    goes on with it and learns from it."""
    router = start_recording()
    replay(router)
    for _ in range(2):
        fleets.wait_until(lambda: metric(router, "balanceroute_history_written_total") > 100, "requests were written")
        written = metric(router, "balanceroute_history_written_total")
        router.kill()
        there = rows(tmp_path / "history.db")
        assert there >= written
        router = start_recording()
        assert f"learned from {there} requests of its history" in router.log.read_text()
        assert rows(tmp_path / "history.db") == there
        replay(router)


def test_a_locked_file_holds_nobody_up(start_recording, replay, tmp_path):
    """Law: while another process holds the file every request is answered; afterwards they are all written."""
    router = start_recording()
    holder = sqlite3.connect(tmp_path / "history.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    replay(router, 60)
    assert metric(router, "balanceroute_history_written_total") == 0
    holder.execute("COMMIT")
    holder.close()
    fleets.wait_until(lambda: metric(router, "balanceroute_history_written_total") == 60 + PROBES, "all were written", 20)
    assert rows(tmp_path / "history.db") == 60 + PROBES
    assert metric(router, "balanceroute_history_dropped_total") == 0


def test_a_history_is_read_as_a_trace_is(start_recording, replay, run, tmp_path):
    """Law: commands read a history, while a router writes it, as they read a trace; what is exported is the same trace."""
    router = start_recording()
    replay(router, 200 - PROBES)
    fleets.wait_until(lambda: metric(router, "balanceroute_history_written_total") == 200, "all were written")
    path, csv = tmp_path / "history.db", tmp_path / "history.csv"

    stats = json.loads(run("history", "stats", path, "--json", "-").stdout)
    assert stats["requests"] == 200
    assert [(one["fleet"], one["outcome"], one["requests"]) for one in stats["outcomes"]] == [("default", "ok", 200)]
    assert "200 requests from 20" in run("history", "stats", path).stdout
    assert "200 requests" in run("history", "export", path, "--csv", csv).stdout
    assert len(csv.read_text().splitlines()) == 201
    assert run("history", "export", path, "--fleet", "default").stdout == csv.read_text()

    def simulated(*source: object) -> dict:
        done = run("simulate", *source, "--policy", "br_h", "--workers", 2, "--slots", 8, "--repeat", 3, "--arrivals", "trace",
                   "--json", "-")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert simulated("--history", path)["runs"] == simulated("--trace", csv)["runs"]
    tuned = run("tune", "--history", path, "--workers", 2, "--slots", 8, "--beta", 8, "--gamma", "0.8", "--horizon-steps", 20,
                "--seed", 1)
    assert tuned.returncode == 0, tuned.stderr
    judged = json.loads(run("predict", "eval", "--history", path, "--json", "-").stdout)
    assert judged["answers"] == 200
    assert [(one["predictor"], one["capped"]) for one in judged["predictors"]] == [
        ("survival", False), ("survival", True), ("exact_match", False), ("exact_match", True)]


@pytest.mark.parametrize("words", [("simulate",), ("simulate", "--trace", TRACE, "--history", "h.db"),
                                   ("tune", "--history", "none.db"), ("predict", "eval"),
                                   ("predict", "eval", "--history", TRACE), ("history", "stats", "none.db"),
                                   ("history", "export", TRACE)])
def test_what_is_no_history_is_bad_usage(run, words):
    """Law: a missing, foreign or second source is exit code 2 and one line that says what was expected."""
    done = run(*words)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
