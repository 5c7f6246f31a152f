"""What `balanceroute simulate` promises: figures that can be had again, one clear message for bad input, no half a file."""

import gzip
import html.parser
import json
import os
import resource

import pytest

from places import ROOT

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


def test_json_to_standard_output(run, tmp_path, monkeypatch):
    """Law: the file - is standard output, which then holds nothing else; only one result can go there."""
    monkeypatch.chdir(tmp_path)
    arguments = ["simulate", "--trace", SEGMENT, "--limit", 200, "--json", "-"]
    ended = run(*arguments)
    assert ended.returncode == 0
    assert [each["policy"] for each in json.loads(ended.stdout)["runs"]] == ["least_tokens", "br_fit"]
    assert "changes against least_tokens" in ended.stderr
    both = run(*arguments, "--html", "-")
    assert (both.returncode, both.stdout) == (2, "")
    assert "at most one file to be standard output" in both.stderr
    assert list(tmp_path.iterdir()) == []


class Page(html.parser.HTMLParser):
    """What a page holds, and that its tags are closed in order."""

    VOID = {"br", "meta"}

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.tables, self.drawings = [], [], 0, []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.links += [given[name] for name in ("src", "href") if name in given]
        self.tables += tag == "table"
        if tag == "svg" and given.get("role") == "img":
            self.drawings.append(given["aria-label"])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_stands_alone(run, tmp_path):
    """Law: the page needs no other file or host, says in words what each drawing shows, and is the same again."""
    trace = tmp_path / "<b>&.csv"
    trace.write_bytes(SEGMENT.read_bytes())
    arguments = ["simulate", "--trace", trace, "--limit", 300, "--policy", "least_tokens,br_0", "--workers", "4,8",
                 "--load", "0.8,1.1", "--seed", "1,2", "--html", tmp_path / "page.html"]
    assert run(*arguments).returncode == 0
    text = (tmp_path / "page.html").read_text()
    page = Page(text)
    assert all(link.startswith("#") for link in page.links)
    assert "<script" not in text and "url(" not in text and "@import" not in text
    assert "<b>&.csv" not in text and "&lt;b&gt;&amp;.csv" in text
    # A panel a policy and two curves a size and load; four charts a scale-up and a load curve.
    assert len(page.drawings) == 4 * (2 + 2) + 4 * (2 + 2)
    assert all(len(label) > 20 for label in page.drawings)
    assert page.tables > 4 * 2
    assert len(text) < 1_000_000
    assert run(*arguments).returncode == 0
    assert (tmp_path / "page.html").read_text() == text


def test_gzip_is_read_like_the_plain_file(run, tmp_path):
    """Law: a compressed trace gives the same figures."""
    packed = tmp_path / SEGMENT.name
    packed.write_bytes(gzip.compress(SEGMENT.read_bytes()))
    runs = [run("simulate", "--trace", path, "--limit", 300) for path in (SEGMENT, packed)]
    assert runs[0].returncode == 0
    assert runs[0].stdout == runs[1].stdout


def azure(*rows):
    return HEADER + "".join(f"{row}\n" for row in rows)


# Three requests, 1.5 s and 0.5 s apart, of 10, 20 and 30 prompt tokens and 1, 2 and 3 output tokens, as each kind of
# file writes them.
GOOD_TRACES = {
    "azure 2023, CRLF, seven digits, no last line end": (
        HEADER.replace("\n", "\r\n") + "2023-11-16 18:15:46.0000000,10,1\r\n2023-11-16 18:15:47.5000000,20,2\r\n"
        "2023-11-16 18:15:48.0000000,30,3"),
    "azure 2024, zone, dropped fraction": azure("2024-05-12 00:00:00+00:00,10,1",
                                                "2024-05-12 00:00:01.500000+00:00,20,2",
                                                "2024-05-12 00:00:02+00:00,30,3"),
    "azure, other zones and a T": azure("2024-05-12T02:00:00+02:00,10,1", "2024-05-11 19:00:01.5-05:00,20,2",
                                        "2024-05-12 00:00:02Z,30,3"),
    "azure, byte order mark, blank lines": "\ufeff" + azure("2024-05-12 00:00:00,10,1", "", "2024-05-12 00:00:01.5,20,2",
                                                            "2024-05-12 00:00:02,30,3", ""),
    "burstgpt": ("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,10,1,11,API log\n"
                 "6.5,GPT-4,20,2,22,API log\n7,GPT-4,30,3,33,API log\n"),
    "mooncake": ('{"timestamp": 0, "input_length": 10, "output_length": 1, "hash_ids": [0]}\n'
                 '{"timestamp": 1500, "input_length": 20, "output_length": 2, "hash_ids": [0, 1]}\n'
                 '{"timestamp": 2000, "input_length": 30, "output_length": 3, "hash_ids": []}\n'),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("kind", GOOD_TRACES)
def test_every_kind_of_trace_gives_the_same_run(run, tmp_path, kind, packed):
    """Law: the same requests give the same figures, whatever kind of file they are written in."""
    reports = []
    for name, text in [("same", GOOD_TRACES["azure 2024, zone, dropped fraction"]), (kind, GOOD_TRACES[kind])]:
        trace = tmp_path / ("trace.gz" if packed else "trace")
        trace.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        ended = run("simulate", "--trace", trace, "--arrivals", "trace", "--warm-start", "false", "--load", 0.1,
                    "--json", tmp_path / "runs.json")
        assert (ended.returncode, ended.stderr) == (0, ""), name
        reports.append(json.loads((tmp_path / "runs.json").read_text()))
    assert reports[0]["trace"]["requests"] == 3
    assert reports[0]["trace"]["mean_prompt_tokens"] == 20
    assert reports[1]["runs"] == reports[0]["runs"]


def test_lengths_without_times_and_equal_times(run, tmp_path):
    """Law: a file without times, and one whose times are all alike, are played as a Poisson process, not by their own."""
    lengths = tmp_path / "lengths.csv"
    lengths.write_text("num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n10,1,11,10\n20,2,22,10\n")
    alike = tmp_path / "alike.csv"
    alike.write_text(azure("2024-05-12 00:00:00,10,1", "2024-05-12 00:00:00,20,2"))
    tables = []
    for trace in (lengths, alike):
        ended = run("simulate", "--trace", trace, "--repeat", 50)
        assert (ended.returncode, ended.stderr) == (0, "")
        tables.append(ended.stdout.replace(trace.name, ""))
        refused = run("simulate", "--trace", trace, "--arrivals", "trace")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "has no arrival times that differ: expected --arrivals poisson" in refused.stderr
    assert tables[0] == tables[1]


def test_measured_step_times(run, tmp_path):
    """Law: a measured line gives the figures of the line, to rounding; a broken table is named by file and line."""
    table = tmp_path / "steps.csv"
    table.write_text("tokens,ms\n0,10\n50000,15\n200000,30\n")
    reports = []
    for flags in (["--fixed-ms", 10, "--per-token-ms", 1e-4], ["--step-time-table", table]):
        ended = run("simulate", "--trace", SEGMENT, "--limit", 300, *flags, "--json", tmp_path / "runs.json")
        assert (ended.returncode, ended.stderr) == (0, "")
        reports.append(json.loads((tmp_path / "runs.json").read_text())["runs"])
    for line, measured in zip(*reports):
        for name in ("step_ms_mean", "barrier_idle_fraction", "throughput_tokens_per_s", "active_mean"):
            assert measured[name] == pytest.approx(line[name], rel=0.01)
        assert measured["settings"]["step_time_table"] == str(table)
    for content, message in [("tokens,ms\n5,10\n5,11\n", ":3: row = \"5,11\": expected more tokens than the row above"),
                             ("tokens,ms\n5,10\n6,9\n", ":3: row = \"6,9\": expected no fewer ms than the row above"),
                             ("tokens,ms\n5,-1\n", ":2: row = \"5,-1\": expected tokens 0..1e15 and ms above 0, to 1e6"),
                             ("tokens,ms\n5,x\n", ":2: row = "), ("tokens,ms\n5,1\n", ": expected at least two rows"),
                             ("a,b\n5,1\n", ":1: expected the header tokens,ms")]:
        table.write_text(content)
        ended = run("simulate", "--trace", SEGMENT, "--step-time-table", table)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.startswith(f"balanceroute: {table}{message}")


def test_predictors_are_crossed_with_policies_that_predict(run, tmp_path):
    """Law: each policy that looks ahead runs with each predictor, the others once; the oracle is never wrong."""
    ended = run("simulate", "--trace", SEGMENT, "--limit", 400, "--policy", "least_tokens,br_0,br_h", "--predictor",
                "survival,exact_match,oracle", "--preset", "paper", "--beta", 40, "--json", tmp_path / "runs.json")
    assert (ended.returncode, ended.stderr) == (0, "")
    runs = json.loads((tmp_path / "runs.json").read_text())["runs"]
    assert [(each["policy"], each["predictor"]) for each in runs] == [
        ("least_tokens", None), ("br_0", None), ("br_h", "survival"), ("br_h", "exact_match"), ("br_h", "oracle")]
    assert "br_h oracle" in ended.stdout
    by_predictor = {each["predictor"]: each["prediction"] for each in runs if each["policy"] == "br_h"}
    assert by_predictor["oracle"]["brier_score"] < 0.01 < by_predictor["survival"]["brier_score"]
    assert by_predictor["oracle"]["outcomes"] > 100
    settings = runs[-1]["settings"]
    assert (settings["preset"], settings["worker_order"], settings["beta"]) == ("paper", "capacity", 40)
    assert runs[1]["settings"]["horizon_steps"] == 80


TUNE = ["tune", "--trace", SEGMENT, "--limit", 150, "--workers", 4, "--beta", "4,43", "--gamma", "0.5,0.9",
        "--horizon-steps", 10, "--seed", "1,2"]


def test_tune(run, tmp_path):
    """Law: the map, the best setting and lines to paste are told and the same again; `serve` takes the lines."""
    arguments = [*TUNE, "--json", tmp_path / "tuned.json", "--html", tmp_path / "tuned.html"]
    first = run(*arguments)
    assert (first.returncode, first.stderr) == (0, "")
    report = json.loads((tmp_path / "tuned.json").read_text())
    assert len(report["trials"]) == 5  # four, and the default
    best = max(report["trials"], key=lambda trial: trial["value"]["mean"])
    assert all(best[name] == report["best"][name] for name in ("beta", "gamma", "horizon_steps", "r_max"))
    assert report["within_noise"] == ("within chance" in first.stdout)
    lines = first.stdout[first.stdout.index("policy:"):]
    config = tmp_path / "router.yaml"
    config.write_text("fleets:\n- name: f\n  groups:\n  - name: g\n    slots: 4\n    workers:\n"
                      "    - {url: 'http://127.0.0.1:1', ranks: 2}\n"
                      + "".join(f"  {line}\n" for line in lines.splitlines()))
    checked = run("config", "check", "--config", config)
    assert checked.returncode == 0, checked.stderr
    page = Page((tmp_path / "tuned.html").read_text())
    assert page.tables == 1 and page.links == []
    assert run(*arguments).stdout == first.stdout


BAD_TUNE_FLAGS = [
    (["--gamma", "0.5,2"], "--gamma = 0.5,2: expected 0..1"),
    (["--beta", "-1"], "--beta = -1: expected 0..1000000"),
    (["--horizon-steps", "0"], "--horizon-steps = 0: expected 1..512"),
    (["--objective", "luck"], "--objective = luck: expected one of auto, throughput"),
    (["--workers", "1"], "--workers = 1: expected 2..65536"),
    (["--trace", "/no/such/trace.csv"], "/no/such/trace.csv: no such file: expected a trace"),
]


@pytest.mark.parametrize("flags,message", BAD_TUNE_FLAGS, ids=[" ".join(flags) for flags, _ in BAD_TUNE_FLAGS])
def test_bad_tune_flag(run, tmp_path, flags, message):
    """Law: `tune` refuses like `simulate`."""
    arguments = [*TUNE, "--json", tmp_path / "tuned.json"]
    for flag, value in zip(flags[::2], flags[1::2]):
        if flag in arguments:
            arguments[arguments.index(flag) + 1] = value
        else:
            arguments += [flag, value]
    ended = run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_timings_only_on_request(run):
    """Law: real time is told with --timings alone."""
    arguments = ["simulate", "--trace", SEGMENT, "--limit", 300]
    assert "took s" not in run(*arguments).stdout
    assert "took s" in run(*arguments, "--timings").stdout


RANGE = "expected a whole number 1..2147483648"
PACKED = gzip.compress(SEGMENT.read_bytes())
# What the file holds, the line that is named (0: none), and what is said.
BAD_TRACES = {
    "empty": (b"", 0, "is empty: expected a trace"),
    "empty gzip": (gzip.compress(b""), 0, "is empty: expected a trace"),
    "header": (b"a,b,c\n1,2,3\n", 1, 'first line = "a,b,c": expected a header with TIMESTAMP,'),
    "not text": (bytes(range(128, 256)), 1, 'first line = "\\x80'),
    "no rows": (HEADER.encode(), 0, "has no rows: expected at least one request"),
    "negative": (azure("2023-11-16 18:15:46.6805900,-4,44"), 2, f'ContextTokens = "-4": {RANGE}'),
    "absurd": (azure("2023-11-16 18:15:46.6805900,9999999999999,44"), 2, f'ContextTokens = "9999999999999": {RANGE}'),
    "above 64 bits": (azure("2023-11-16 18:15:46,4,99999999999999999999"), 2,
                      f'GeneratedTokens = "99999999999999999999": {RANGE}'),
    "no output": (azure("2023-11-16 18:15:46.6805900,4,0"), 2, f'GeneratedTokens = "0": {RANGE}'),
    "half a token": (azure("2023-11-16 18:15:46.6805900,4.5,1"), 2, f'ContextTokens = "4.5": {RANGE}'),
    "no time": (azure("yesterday,4,1"), 2, 'TIMESTAMP = "yesterday": expected a time like 2023-11-16 18:15:46.6805900'),
    "short row": (azure("2023-11-16 18:15:46.6805900,4"), 2, "expected 3 fields"),
    "unsorted": (azure(*reversed(ROWS.splitlines())), 3, "expected a time not before the row above"),
    "unsorted mooncake": (b'{"timestamp": 5, "input_length": 1, "output_length": 1}\n'
                          b'{"timestamp": 4, "input_length": 1, "output_length": 1}\n', 2,
                          "expected a time not before the row above"),
    "negative mooncake": (b'{"timestamp": 5, "input_length": -1, "output_length": 1}\n', 1,
                          f'input_length = "-1": {RANGE}'),
    "negative burstgpt": (b"Timestamp,Request tokens,Response tokens\n-5,1,1\n", 2,
                          'Timestamp = "-5": expected seconds from the start of the trace, 0..1e9'),
    "long line": ((HEADER + ROWS).encode() + b"9" * 3_000_000, 4, "line is longer than 1048576 bytes: expected a trace row"),
    "cut gzip": (PACKED[:5000], -1, "gzip stream ends early: expected a complete file"),
    "gzip without its last bytes": (PACKED[:-4], -1, "gzip stream ends early: expected a complete file"),
    "broken gzip": (PACKED[:3000] + b"\xff" * 100 + PACKED[3100:], -1, "cannot read: "),
}


@pytest.mark.parametrize("kind", BAD_TRACES)
def test_bad_trace(run, tmp_path, kind):
    """Law: a bad trace is one message with file, line, value and what was expected; exit code 2, nothing written."""
    content, line, message = BAD_TRACES[kind]
    trace = tmp_path / "trace.csv"
    trace.write_bytes(content if isinstance(content, bytes) else content.encode())
    ended = run("simulate", "--trace", trace, "--json", tmp_path / "runs.json")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"balanceroute: {trace}:")
    assert message in ended.stderr
    if line > 0:
        assert ended.stderr.startswith(f"balanceroute: {trace}:{line}: ")
    assert ended.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["trace.csv"]


@pytest.mark.parametrize("path,message", [("missing.csv", "no such file: expected a trace"),
                                          (".", "is a directory: expected a trace file")])
def test_no_such_trace(run, tmp_path, path, message):
    """Law: a missing file and a folder are named."""
    ended = run("simulate", "--trace", tmp_path / path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"balanceroute: {tmp_path / path}: {message}\n"


def test_a_line_of_a_gigabyte_is_refused_unread(run, tmp_path):
    """Law: a line is read to its longest length and no further, in little memory."""
    trace = tmp_path / "trace.csv"
    trace.write_text(HEADER + ROWS)
    os.truncate(trace, 1 << 30)  # the rest is one line of NUL bytes, without blocks on the disk
    ended = run("simulate", "--trace", trace, seconds=10, preexec_fn=limit_memory)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"balanceroute: {trace}:4: line is longer than 1048576 bytes: expected a trace row\n"


def limit_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (256 << 20, 256 << 20))


BAD_FLAGS = [
    (["--policy", "best"], "--policy = best: expected one of "),
    (["--policy", "least_tokens,"], "--policy = least_tokens,: expected one of "),
    (["--slots", "0"], "--slots = 0: expected 1..65536"),
    (["--workers", "8,0"], "--workers = 8,0: expected 1..65536"),
    (["--workers", "1"], "policy br_fit evens out the waiting at a barrier, but group of --workers 1 has one worker"),
    (["--load", "0"], "--load = 0: expected 0.001..100"),
    (["--load", "-1"], "--load = -1: expected 0.001..100"),
    (["--load", "nan"], "--load = nan: expected 0.001..100"),
    (["--r-max", "0"], "--r-max = 0: expected 1..1024 or auto"),
    (["--gamma", "2"], "--gamma = 2: expected 0..1"),
    (["--policy", "br_0", "--beta", "43"], "--beta = 43: expected auto under br_0"),
    (["--policy", "br_h", "--predictor", "guess"], "--predictor = guess: expected one of survival, exact_match, oracle"),
    (["--preset", "mine"], "--preset = mine: expected one of "),
    (["--horizon-steps", "-1"], "--horizon-steps = -1: expected 0..512"),
    (["--repeat", "0"], "--repeat = 0: expected 1..1000000"),
    (["--fixed-ms", "0", "--per-token-ms", "0"], "expected a step to take some time"),
    (["--min-output", "99999"], "no request has 99999 output tokens or more, as --min-output asks"),
    (["--kv-capacity-tokens", "1000"], "--kv-capacity-tokens = 1000: expected at least "),
    (["--prefill-instances", "-1"], "--prefill-instances = -1: expected 0..4096"),
    (["--arrivals", "uniform"], "--arrivals = uniform: expected one of poisson, trace"),
    (["--html", "/"], "/: is a folder: expected a file to write"),
    (["--html", "/no/such/folder/page.html"], "/no/such/folder/page.html: cannot be written"),
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
