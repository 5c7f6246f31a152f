"""What `balanceroute config` promises: a configuration is valid, or everything that is wrong is said at once."""

import json
import re
import textwrap

import pytest

from places import ROOT

VALID = """\
fleets:
  - groups:
      - name: g
        slots: 8
        workers:
          - url: http://127.0.0.1:9000
            ranks: 4
"""


@pytest.fixture
def config(tmp_path):
    """config(text): the path of a configuration file."""

    def write(text: str):
        path = tmp_path / "router.yaml"
        path.write_text(text)
        return path

    return write


def test_valid_configuration(run, config):
    """Law: a valid file is named on stdout, with exit code 0."""
    path = config(VALID)
    ended = run("config", "check", "--config", path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{path}: ok\n", "")


def test_one_problem_is_one_line(run, config):
    """Law: a mistake is one line on stderr with file, line, path, value and what was expected; exit code 2."""
    path = config(VALID.replace("slots: 8", "slots: 0"))
    ended = run("config", "check", "--config", path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"balanceroute: {path}:4: fleets[0].groups[0].slots = 0: expected 1..65536\n"


def test_all_problems_are_told(run, config):
    """Law: several mistakes are told together, each in a line."""
    path = config(VALID.replace("slots: 8", "slotz: 8") + "limits: 5\n")
    ended = run("config", "check", "--config", path)
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        "balanceroute: the configuration has 3 problems:",
        f"  {path}:3: fleets[0].groups[0].slots: missing, expected 1..65536",
        f"  {path}:4: fleets[0].groups[0].slotz: unknown key; did you mean slots?",
        f"  {path}:8: limits = 5: expected a section of settings"]


def test_problems_between_settings_have_their_origin(run, config):
    """Law: what no single setting can say is told with where the setting was set."""
    path = config(VALID)
    ended = run("config", "check", "--config", path, "--listen", "nowhere")
    assert ended.returncode == 2
    assert ended.stderr.startswith("balanceroute: flag --listen: listen = nowhere: expected ")


def test_show_tells_values_and_origins(run, config):
    """Law: flags win over the environment, it over the file, and each value has its origin beside it."""
    path = config("log_level: warn\nlimits: {connections: 5}\n" + VALID)
    ended = run("config", "show", "--config", path, "--limits-connections", 7,
                environment={"BALANCEROUTE_LIMITS_CONNECTIONS": "6", "BALANCEROUTE_LOG_LEVEL": "error"})
    lines = [line.strip() for line in ended.stdout.splitlines()]
    assert ended.returncode == 0
    assert "connections: 7  # flag --limits-connections" in lines
    assert "log_level: error  # environment BALANCEROUTE_LOG_LEVEL" in lines
    assert f"ranks: 4  # {path}:9" in lines
    assert 'listen: "127.0.0.1:8080"  # default' in lines


def test_shown_configuration_is_a_configuration(run, config, tmp_path):
    """Law: what show prints is a file that gives the same values."""
    first = run("config", "show", "--config", config(VALID)).stdout
    shown = tmp_path / "shown.yaml"
    shown.write_text(first)
    second = run("config", "show", "--config", shown).stdout
    values = [[line.split("  #")[0] for line in text.splitlines()] for text in (first, second)]
    assert values[0] == values[1]


def test_json_is_a_configuration(run, config):
    """Law: any program that writes JSON can write a configuration."""
    path = config(json.dumps({"fleets": [{"policy": {"greedy_threshold": "auto"}, "groups": [
        {"name": "g", "slots": 8, "workers": [{"url": "http://127.0.0.1:9000", "ranks": 2}]}]}]}))
    assert run("config", "check", "--config", path).returncode == 0


def test_unknown_variable_is_refused(run, config):
    """Law: a mistyped variable is an error, not nothing; what Kubernetes sets for a service is not ours."""
    path = config(VALID)
    ended = run("config", "check", "--config", path, environment={"BALANCEROUTE_LISTN": "127.0.0.1:0"})
    assert ended.returncode == 2
    assert "BALANCEROUTE_LISTN: unknown variable; did you mean BALANCEROUTE_LISTEN?" in ended.stderr
    linked = run("config", "check", "--config", path, environment={"BALANCEROUTE_PORT": "tcp://10.0.0.1:80"})
    assert linked.returncode == 0


@pytest.mark.parametrize("path, reason", [("no/such.yaml", "No such file or directory"), (".", "a directory")])
def test_file_that_cannot_be_read(run, path, reason):
    """Law: a file that cannot be read is named with the reason; exit code 2."""
    ended = run("config", "check", "--config", path)
    assert ended.returncode == 2
    assert f"{path}: {reason}" in ended.stderr


def test_reference_has_a_row_for_every_setting(run):
    """Law: the reference names settings of list entries too, with range, default and meaning."""
    ended = run("config", "reference")
    assert ended.returncode == 0
    assert "| `limits.connections` | integer | 1..10000000 or auto | `auto` | " in ended.stdout
    assert "| `fleets[].groups[].slots` | integer | 1..65536 | required | " in ended.stdout


def test_documented_reference_is_the_binarys(run):
    """Law: the table in the documents is the one that the program prints."""
    table = run("config", "reference").stdout
    assert table in (ROOT / "docs/configuration.md").read_text(), "run scripts/reference"


def indented_yaml(text: str, first_line: str) -> str:
    """The indented block of a document that starts with a line."""
    block = re.search(rf"^    {re.escape(first_line)}\n((?:    .*\n)+)", text, re.MULTILINE)
    return textwrap.dedent(block[1])


def test_documented_configurations_are_valid(run, config):
    """Law: the configurations in README.md and docs/configuration.md are ones that the router takes."""
    fenced = re.search(r"```yaml\n(.*?)```", (ROOT / "docs/configuration.md").read_text(), re.DOTALL)[1]
    in_readme = indented_yaml((ROOT / "README.md").read_text(), "# router.yaml")
    for text in (fenced, in_readme):
        ended = run("config", "check", "--config", config(text))
        assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*.yaml")), ids=lambda path: path.stem)
def test_examples_are_valid(run, example):
    """Law: every example is a valid configuration."""
    ended = run("config", "check", "--config", example)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{example}: ok\n", "")


def test_every_dialect_has_an_example():
    """Law: every dialect of the reference has an example of its name."""
    reference = (ROOT / "docs" / "configuration.md").read_text()
    row = re.search(r"`fleets\[\]\.dialect` \| choice \| one of ([^|]+) \|", reference)
    dialects = {name.strip() for name in row.group(1).split(",")}
    assert dialects <= {path.stem for path in ROOT.glob("examples/*.yaml")}


PREFILL = """\
    dialect: %s
    prefill:
      instances: [{url: "http://127.0.0.1:9100"}]
"""


@pytest.mark.parametrize(
    ("dialect", "change", "message"),
    [
        ("aggregated", "", "prefill.instances = 1: expected none with dialect aggregated"),
        ("vllm_nixl", 'url: "http://127.0.0.1:9100"', "prefill.instances = []: expected at least one prefill instance"),
        ("vllm_nixl", "addressing", "workers[0].addressing = body: expected port or header with dialect vllm_nixl"),
        ("vllm_nixl", "same", "http://127.0.0.1:9000".removeprefix("http://") + ": is already the address of"),
        ("vllm_nixl", "hold", "prefill.hold_limit_ms = 40000: expected less than lease_ms"),
        ("ascend_layerwise", "wildcard", "prefill.callback_url = '': expected http://host:port"),
    ],
)
def test_prefill_mistakes_are_named(run, config, dialect, change, message):
    """Law: what a dialect cannot work with is said with the key and what was expected."""
    text = VALID + PREFILL % dialect
    if change.startswith("url"):
        text = text.replace("{" + change + "}", "")
    if change == "addressing":
        text = text.replace("ranks: 4", "ranks: 4\n            addressing: body")
    if change == "same":
        text = text.replace("9100", "9000")
    if change == "hold":
        text += "      hold_limit_ms: 40000\n"
    if change == "wildcard":
        text = "listen: 0.0.0.0:8080\n" + text
    ended = run("config", "check", "--config", config(text))
    assert ended.returncode == 2
    assert message in ended.stderr
