"""The demo, shortened: every policy over real HTTP, its figures in JSON and on a page."""

import json

import pytest

RUNS = [("aggregated", policy) for policy in ("join_shortest_queue", "least_tokens", "br_0", "br_fit")]
RUNS += [("vllm_nixl", policy) for policy in ("join_shortest_queue", "br_fit")]
REPLAY_FIELDS = {"requests", "completed", "errors", "retries", "tokens", "throughput_tokens_per_s", "ttft_ms", "tpot_ms",
                 "e2e_ms"}
ENGINE_FIELDS = {"barrier_idle_fraction", "load_idle_fraction", "spread_mean_tokens", "late_steps_fraction"}


def test_demo_runs_every_policy(run, tmp_path):
    json_file, page = tmp_path / "demo.json", tmp_path / "demo.html"
    done = run("demo", "--workers", 2, "--slots", 4, "--seconds", 1, "--json", json_file, "--html", page, seconds=60)
    assert done.returncode == 0, done.stderr
    runs = json.loads(json_file.read_text())["runs"]
    assert [(one["dialect"], one["policy"]) for one in runs] == RUNS
    for one in runs:
        assert REPLAY_FIELDS | ENGINE_FIELDS <= one.keys()
        assert one["errors"] == 0
        assert one["requests"] == one["completed"] + one["unfinished"]
        assert 0 < one["load_idle_fraction"] < 1
        assert one["policy"] in done.stdout
        assert f"<td>{one['policy']}</td>" in page.read_text()
        for figure in one["simulated"].values():
            assert 0 < figure["lowest"] <= figure["mean"] <= figure["highest"]
    assert "live / simulated" in done.stdout


def test_demo_that_cannot_write_says_so(run, tmp_path):
    done = run("demo", "--workers", 2, "--slots", 1, "--seconds", 1, "--json", tmp_path / "no" / "demo.json", seconds=60)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_replay_checks_every_token_and_reports(run, start_emulator, tmp_path):
    engines = start_emulator(ranks=1, slots=8, fixed_ms=1)
    trace = tmp_path / "trace.csv"
    rows = [f"2025-01-01 00:00:0{i // 10}.{i % 10}00000,{100 + i},{5 + i % 9}" for i in range(30)]
    trace.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]) + "\n")
    json_file = tmp_path / "replay.json"
    done = run("replay", "--url", engines.ready["groups"][0][0], "--trace", trace, "--speed", 10, "--length-member",
               "emulator", "--json", json_file, seconds=60)
    assert done.returncode == 0, done.stderr
    result = json.loads(json_file.read_text())
    assert (result["requests"], result["completed"], result["errors"]) == (30, 30, 0)
    assert result["tokens"] == sum(5 + i % 9 for i in range(30))
    assert [part["requests"] for part in result["by_prompt"]] == [30, 0, 0, 0, 0]
    assert "prompt <= 512" in done.stdout
    assert done.stderr == "", "progress is for terminals"


@pytest.mark.parametrize("flags, words", [
    ((), ["127.0.0.1:1", "connect"]),
    (("--model", "m"), ["127.0.0.1:1", "a first short request failed", "connect"]),
])
def test_replay_to_nothing_is_one_message(run, tmp_path, flags, words):
    trace = tmp_path / "trace.csv"
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2025-01-01 00:00:00.000000,5,5\n")
    done = run("replay", "--url", "http://127.0.0.1:1", "--trace", trace, "--retries", 0, *flags,
               environment={"OPENAI_API_KEY": "sk-secret"})
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert all(word in done.stderr for word in words), done.stderr
    assert "sk-secret" not in done.stderr


def test_replay_of_a_wrong_model_is_one_message(run, start_emulator, tmp_path):
    engines = start_emulator(ranks=1, slots=8, fixed_ms=1)
    trace = tmp_path / "trace.csv"
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2025-01-01 00:00:00.000000,5,5\n")
    done = run("replay", "--url", engines.ready["groups"][0][0], "--trace", trace, "--model", "no-such-model")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "no-such-model" in done.stderr
