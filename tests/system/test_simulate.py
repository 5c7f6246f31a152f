"""What `balanceroute simulate` promises: figures that can be had again, one clear message for bad input, no half a file."""

import gzip
import json

import pytest

from conftest import ROOT

SEGMENT = ROOT / "examples/traces/azure2023_conv_segment.csv"
HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
ROWS = "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"


def test_table_and_json(run, tmp_path):
    """Law: every combination is told, in the table and in the file; a second call gives the same bytes."""
    arguments = ["simulate", "--trace", SEGMENT, "--limit", 500, "--policy", "least_tokens,br_0", "--workers", "4,8",
                 "--load", "0.8,1.1", "--seed", "1,2", "--json", tmp_path / "runs.json"]
    first = run(*arguments)
    assert (first.returncode, first.stderr) == (0, "")
    text = (tmp_path / "runs.json").read_text()
    report = json.loads(text)
    assert report["trace"]["requests"] == 500
    combinations = {(each["workers"], each["load"], each["policy"], each["seed"]) for each in report["runs"]}
    assert combinations == {(workers, load, policy, seed) for workers in (4, 8) for load in (0.8, 1.1)
                            for policy in ("least_tokens", "br_0") for seed in (1, 2)}
    assert first.stdout.count("changes against least_tokens") == 4
    again = run(*arguments)
    assert again.stdout == first.stdout
    assert (tmp_path / "runs.json").read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["runs.json"]


def test_gzip_is_read_like_the_plain_file(run, tmp_path):
    """Law: a compressed trace gives the same figures."""
    packed = tmp_path / SEGMENT.name
    packed.write_bytes(gzip.compress(SEGMENT.read_bytes()))
    runs = [run("simulate", "--trace", path, "--limit", 300) for path in (SEGMENT, packed)]
    assert runs[0].returncode == 0
    assert runs[0].stdout == runs[1].stdout


def test_timings_only_on_request(run):
    """Law: real time is told with --timings alone."""
    arguments = ["simulate", "--trace", SEGMENT, "--limit", 300]
    assert "took s" not in run(*arguments).stdout
    assert "took s" in run(*arguments, "--timings").stdout


BAD_TRACES = {
    "empty": (b"", "is empty: expected a trace"),
    "header": (b"a,b,c\n1,2,3\n", "expected "),
    "no rows": (HEADER.encode(), "has no rows: expected at least one request"),
    "negative": ((HEADER + "2023-11-16 18:15:46.6805900,-4,44\n").encode(), ':2: ContextTokens = "-4": expected '),
    "absurd": ((HEADER + "2023-11-16 18:15:46.6805900,9999999999999,44\n").encode(),
               ':2: ContextTokens = "9999999999999": expected '),
    "no output": ((HEADER + "2023-11-16 18:15:46.6805900,4,0\n").encode(), ':2: GeneratedTokens = "0": expected '),
    "unsorted": ((HEADER + "".join(reversed(ROWS.splitlines(keepends=True)))).encode(),
                 ":3: row = "),
    "long line": ((HEADER + ROWS).encode() + b"9" * 3_000_000, ":4: "),
    "cut gzip": (gzip.compress(SEGMENT.read_bytes())[:5000], "gzip"),
}


@pytest.mark.parametrize("kind", BAD_TRACES)
def test_bad_trace(run, tmp_path, kind):
    """Law: a bad trace is one message with file, line, value and what was expected; exit code 2, nothing written."""
    content, message = BAD_TRACES[kind]
    trace = tmp_path / "trace.csv"
    trace.write_bytes(content)
    ended = run("simulate", "--trace", trace, "--json", tmp_path / "runs.json")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"balanceroute: {trace}")
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["trace.csv"]


@pytest.mark.parametrize("path", ["missing.csv", "."])
def test_no_such_trace(run, tmp_path, path):
    """Law: a missing file and a folder are named."""
    ended = run("simulate", "--trace", tmp_path / path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert str(tmp_path / path) in ended.stderr


BAD_FLAGS = [
    (["--policy", "best"], "--policy = best: expected one of "),
    (["--policy", "least_tokens,"], "--policy = least_tokens,: expected one of "),
    (["--slots", "0"], "--slots = 0: expected 1..65536"),
    (["--workers", "8,0"], "--workers = 8,0: expected 1..65536"),
    (["--workers", "1"], "policy br_0 evens out the waiting at a barrier, but group of --workers 1 has one worker"),
    (["--load", "0"], "--load = 0: expected 0.001..100"),
    (["--load", "-1"], "--load = -1: expected 0.001..100"),
    (["--load", "nan"], "--load = nan: expected 0.001..100"),
    (["--r-max", "0"], "--r-max = 0: expected 1..16"),
    (["--repeat", "0"], "--repeat = 0: expected 1..1000000"),
    (["--fixed-ms", "0", "--per-token-ms", "0"], "expected a step to take some time"),
    (["--min-output", "99999"], "no request has 99999 output tokens or more, as --min-output asks"),
    (["--kv-capacity-tokens", "1000"], "--kv-capacity-tokens = 1000: expected at least "),
    (["--prefill-instances", "-1"], "--prefill-instances = -1: expected 0..4096"),
    (["--arrivals", "uniform"], "--arrivals = uniform: expected one of poisson, trace"),
    (["--json", "/"], "/: is a folder: expected a file to write"),
    (["--json", "/no/such/folder/runs.json"], "/no/such/folder/runs.json: cannot be written"),
]


@pytest.mark.parametrize("flags,message", BAD_FLAGS, ids=[" ".join(flags) for flags, _ in BAD_FLAGS])
def test_bad_flag(run, flags, message):
    """Law: a bad setting is named with its value and what was expected; exit code 2, no output."""
    ended = run("simulate", "--trace", SEGMENT, *flags)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr


def test_bad_rows_can_be_left_out(run, tmp_path):
    """Law: with --skip-bad-rows bad rows are counted and named as left out."""
    trace = tmp_path / "trace.csv"
    trace.write_text(HEADER + ROWS + "2023-11-16 18:15:51.0000000,x,1\n")
    assert run("simulate", "--trace", trace).returncode == 2
    ended = run("simulate", "--trace", trace, "--skip-bad-rows")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "1 bad row left out" in ended.stdout
