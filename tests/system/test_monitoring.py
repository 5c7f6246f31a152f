"""What is promised to whoever watches the router: documented metrics, alert rules and a dashboard that find their data,
idle shares that are those of the engines."""

import contextlib
import json
import pathlib
import re
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

import fleets
from places import ROOT

TRACE = ROOT / "examples/traces/azure2023_conv_segment.csv"
RULES = ROOT / "deploy/prometheus"
DASHBOARD = ROOT / "deploy/grafana/balanceroute.json"
SCRAPE_SECONDS = 0.5
# Long enough for several scrapes; rates are taken over it.
WINDOW = "8s"
# Without a sample before a key has exceeded its limit or a request could not be read, without certificates, and with a
# shadow of the other mode.
SELDOM = {"balanceroute_tenant_limited_total", "balanceroute_http_refused_total",
          "balanceroute_tls_certificate_expires_seconds", "balanceroute_shadow_load_idle_ratio",
          "balanceroute_shadow_imbalance_tokens", "balanceroute_shadow_waiting_requests"}


@pytest.fixture
def busy(start_emulator, start_router, binary, tmp_path):
    """A fleet with a prefill side under br_h and a history, with a real trace under way: (emulator's url, router's admin url)."""
    engines = start_emulator(ranks=4, slots=16, fixed_ms=5, per_token_ms=4e-4, dialect="vllm_nixl",
                             prefill_instances=2, kv_capacity_tokens=400_000).ready
    workers = [{"url": url} for url in engines["groups"][0]]
    router = start_router({
        "fleets": [{"dialect": "vllm_nixl", "policy": {"name": "br_h"}, "shadow": {"policy": "least_tokens"},
                    "groups": [{"name": "g", "slots": 16, "kv_capacity_tokens": 400_000, "workers": workers}],
                    "prefill": {"instances": [{"url": url} for url in engines["prefill"]]}}],
        "history": {"path": str(tmp_path / "history.db")},
        "health": {"interval_ms": 300}}).ready
    replay = subprocess.Popen(
        [binary, "replay", "--url", f"http://{router['listen']}", "--trace", TRACE, "--rate-per-s", "12",
         "--length-member", "emulator", "--warm-requests", "40"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield engines["groups"][0][0], f"http://{router['admin']}"
    finally:
        replay.terminate()
        replay.wait(10)


def families(page: str) -> dict[str, str]:
    """Name and type of every family of a page."""
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))


def samples(page: str) -> dict[str, dict[str, float]]:
    """Family or series name -> labels as text -> value."""
    out: dict[str, dict[str, float]] = {}
    for name, labels, value in re.findall(r"^(balanceroute_\w+)(?:\{(.*)\})? (\S+)$", page, re.MULTILINE):
        out.setdefault(name, {})[labels] = float(value)
    return out


def label_names(name: str, kind: str, found: dict[str, dict[str, float]]) -> set[str] | None:
    """Those of a family's samples; none if it has no sample."""
    rows = found.get(f"{name}_count" if kind == "histogram" else name)
    return set(re.findall(r'(\w+)="', next(iter(rows)))) if rows else None


def documented() -> dict[str, tuple[str, set[str]]]:
    """Metric -> type and labels, by docs/metrics.md."""
    rows = re.findall(r"^\| `(balanceroute_\w+)` \| (\w+) \|([^|]*)\|", (ROOT / "docs/metrics.md").read_text(),
                      re.MULTILINE)
    return {name: (kind, {label.strip() for label in labels.split(",")} - {""}) for name, kind, labels in rows}


def test_every_metric_is_documented_with_its_type_and_labels(busy):
    """Law: the document and a live scrape name the same metrics."""
    _, admin = busy
    fleets.wait_until(lambda: "balanceroute_engine_running_sequences{" in fleets.fetch(f"{admin}/metrics"),
                      "engines have been asked")
    fleets.wait_until(lambda: 'tenant_requests_total{outcome="ok"' in fleets.fetch(f"{admin}/metrics"), "a request ended")
    page = fleets.fetch(f"{admin}/metrics")
    live, known, found = families(page), documented(), samples(page)
    assert sorted(known.keys() - SELDOM) == sorted(live.keys() - SELDOM)
    for name in known.keys() - SELDOM:
        kind, labels = known[name]
        assert kind == live[name], name
        assert label_names(name, kind, found) == labels, name


def metrics_in(expression: str) -> set[str]:
    """Selectors of an expression, with their labels but without ranges and aggregations."""
    return set(re.findall(r"balanceroute_\w+(?:\{[^}]*\})?", expression))


def test_rules_are_sound():
    """Law: promtool takes the rules, they fire when their tests say so, and the example configuration finds them."""
    for words in (["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"],
                  ["check", "config", "prometheus.yml"]):
        done = subprocess.run(["promtool", *words], cwd=RULES, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stdout + done.stderr


@contextlib.contextmanager
def prometheus(folder: pathlib.Path, target: str):
    """A Prometheus that scrapes the target; yields a function that asks it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    config = {"global": {"scrape_interval": f"{int(SCRAPE_SECONDS * 1000)}ms"},
              "scrape_configs": [{"job_name": "balanceroute", "static_configs": [{"targets": [target]}]}]}
    (folder / "prometheus.yml").write_text(json.dumps(config))
    log = (folder / "prometheus.log").open("wb")
    server = subprocess.Popen(["prometheus", f"--config.file={folder / 'prometheus.yml'}",
                               f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}"],
                              stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ask(query: str) -> list[dict]:
        url = f"http://{address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            return json.loads(fleets.fetch(url))["data"]["result"]
        except urllib.error.HTTPError as refused:
            if refused.code != 400:
                raise  # not ready yet
            raise AssertionError(f"{query}: {refused.read().decode()}") from None

    def is_up() -> bool:
        try:
            return len(ask("balanceroute_group_steps_total")) > 0
        except OSError:
            return False

    try:
        fleets.wait_until(is_up, "Prometheus has scraped the router", 20)
        yield ask
    finally:
        server.terminate()
        server.wait(20)
        log.close()


def test_queries_of_dashboard_and_rules_find_data(busy, tmp_path):
    """Law: every query of the Grafana dashboard returns data, and every metric that an alert looks at exists."""
    _, admin = busy
    panels = json.loads(DASHBOARD.read_text())["panels"]
    queries = {target["expr"] for panel in panels for target in panel.get("targets", [])}
    assert len(queries) > 30
    rules = "\n".join(re.findall(r"expr:(.*?)(?=\n {8}\w+:)", (RULES / "alerts.yml").read_text(), re.DOTALL))
    selectors = metrics_in(rules)
    assert len(selectors) > 10
    with prometheus(tmp_path, admin.removeprefix("http://")) as ask:
        def missing() -> list[str]:
            filled = [query.replace("$__rate_interval", WINDOW).replace("$fleet", ".*").replace("$group", ".*")
                      for query in sorted(queries)]
            return [query for query in [*filled, *sorted(selectors)] if not ask(query)]

        with contextlib.suppress(AssertionError):  # which it is that is missing says more than that one is
            fleets.wait_until(lambda: not missing(), "every query has data", 25)
        assert missing() == []


def sums(page: str) -> tuple[float, float, float, float]:
    found = samples(page)
    return tuple(next(iter(found[f"balanceroute_group_{name}_total"].values()))
                 for name in ("envelope_tokens", "mean_load_tokens", "stepping_seconds", "idle_seconds"))


def test_idle_shares_are_those_of_the_engines(start_emulator, start_router, run):
    """Law: the idle shares of any span are within some points of what the engines measured in it.

    Round robin, so that there is something to measure. The engines count single steps; the router sees their tokens.
    """
    engines = start_emulator(ranks=4, slots=16, fixed_ms=10, per_token_ms=8e-4).ready
    router = start_router({"fleets": [{"policy": {"name": "round_robin"}, "groups": [
        {"name": "g", "slots": 16, "workers": [{"url": url} for url in engines["groups"][0]]}]}]}).ready
    engine, admin = engines["groups"][0][0], f"http://{router['admin']}"
    replay = ["replay", "--url", f"http://{router['listen']}", "--trace", TRACE, "--rate-per-s", 6, "--length-member",
              "emulator", "--limit", 70]
    run(*replay, seconds=50)
    measured = json.loads(fleets.fetch(f"{engine}/emulator/stats"))
    page = fleets.fetch(f"{admin}/metrics")
    envelope, mean, seconds, idle = sums(page)
    assert 1 - mean / envelope == pytest.approx(measured["load_idle_fraction"], abs=0.03)
    # Until the price of a token is known the share is the load's, the most that it can be.
    assert measured["barrier_idle_fraction"] - 0.03 <= idle / seconds <= 1 - mean / envelope + 0.03
