"""Workers that come, go and change while the real binary serves: health, administration, reload."""

import contextlib
import json
import signal
import socket
import time
import urllib.error
import urllib.request

import pytest

SLOTS = 4
# So that a test waits for milliseconds where an operator waits for seconds.
QUICK = {"interval_ms": 20, "unhealthy_after": 2, "healthy_after": 1}


def call(url: str, method: str = "GET", body: dict | None = None) -> tuple[int, dict]:
    """Status and JSON of an answer, an error or not."""
    data = json.dumps(body).encode() if body is not None else None
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, method=method), timeout=10) as answer:
            return answer.status, json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as answer:
        return answer.code, json.loads(answer.read() or b"{}")


def wait_until(condition, seconds: float = 10.0) -> None:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "the condition did not come true"


class Router:
    """A router and what an operator asks it."""

    def __init__(self, start_router, groups: list[list[str]], slots: int = SLOTS, **settings):
        self.config = {
            "health": QUICK,
            "fleets": [{"policy": {"name": "join_shortest_queue"}, "groups": [
                {"name": f"g{number}", "slots": slots, "workers": [{"url": url} for url in urls]}
                for number, urls in enumerate(groups)]}],
            **settings,
        }
        self.process = start_router(self.config)
        self.url = f"http://{self.process.ready['listen']}"
        self.admin = f"http://{self.process.ready['admin']}"
        self.path = self.process.command[-1]

    def workers(self) -> list[dict]:
        return call(f"{self.admin}/workers")[1]["workers"]

    def state(self, url: str) -> str | None:
        return next((worker["state"] for worker in self.workers() if worker["url"] == url), None)

    def complete(self) -> int:
        return call(f"{self.url}/v1/completions", "POST", {"model": "emulated", "prompt": "hi", "max_tokens": 2})[0]

    def rewrite(self, config: dict) -> None:
        with open(self.path, "w") as file:
            json.dump({"listen": "127.0.0.1:0", "admin": {"listen": "127.0.0.1:0"}, **config}, file)

    def log(self) -> str:
        return self.process.log.read_text()


@pytest.fixture
def engines(start_emulator):
    """engines(groups=1, ranks=2): an emulated fleet."""
    return lambda **flags: start_emulator(slots=SLOTS, fixed_ms=2, per_token_ms=0.0001, **flags)


def test_restarted_engine_comes_back_as_another_incarnation(engines, start_router):
    """Law: an engine that was gone is another one when it is back; meanwhile the other group serves."""
    groups = engines(groups=2, ranks=1).ready["groups"]
    router = Router(start_router, groups)
    assert [worker["state"] for worker in router.workers()] == ["ready", "ready"]
    call(f"{groups[0][0]}/emulator/restart", "POST", {"down_ms": 400})
    wait_until(lambda: router.state(groups[0][0]) == "dead")
    assert router.complete() == 200
    wait_until(lambda: router.state(groups[0][0]) == "ready")
    assert next(w for w in router.workers() if w["url"] == groups[0][0])["incarnation"] == 1
    assert "Connection refused" in router.log()


def test_dead_rank_stops_its_group_and_says_so(engines, start_router):
    """Law: with every group stopped requests are 503, and the log says why and what to do."""
    urls = engines(ranks=2).ready["groups"][0]
    router = Router(start_router, [urls])
    call(f"{urls[0]}/emulator/restart", "POST", {"down_ms": 2000})
    wait_until(lambda: router.state(urls[0]) == "dead")
    assert router.complete() == 503
    assert call(f"{router.url}/health/ready")[0] == 503
    assert f"group g0 takes no requests: its workers wait for {urls[0]}" in router.log()
    wait_until(lambda: router.state(urls[0]) == "ready")
    assert router.complete() == 200


def test_unreachable_worker_is_named_at_the_start(engines, start_router):
    """Law: a router starts without some of its workers and names them with the reason."""
    url = engines(ranks=1).ready["groups"][0][0]
    router = Router(start_router, [[url, "http://127.0.0.1:1"]])
    assert "starts degraded: 1 of 2 workers take requests" in router.log()
    assert "http://127.0.0.1:1 (group g0) is absent: connect to 127.0.0.1:1: Connection refused" in router.log()
    assert router.complete() == 200


def test_no_decode_worker(start_router):
    """Law: without any worker the router runs, is not ready and says what to look at."""
    router = Router(start_router, [["http://127.0.0.1:1"]])
    assert "no decode worker takes requests" in router.log()
    status, body = call(f"{router.url}/health/ready")
    assert (status, body["workers_ready"]) == (503, 0)
    status, body = call(f"{router.url}/v1/completions", "POST", {"model": "m", "prompt": "x"})
    assert (status, body["error"]["code"]) == (503, "no_worker_ready")


def test_busy_port(run, start_router, engines, tmp_path):
    """Law: an address that somebody else has is named; exit code 1."""
    url = engines(ranks=1).ready["groups"][0][0]
    first = Router(start_router, [[url]])
    path = tmp_path / "second.yaml"
    path.write_text(json.dumps({**first.config, "listen": first.process.ready["listen"],
                                "admin": {"listen": "127.0.0.1:0"}}))
    ended = run("serve", "--config", path)
    assert ended.returncode == 1
    assert first.process.ready["listen"] in ended.stderr
    assert "Address already in use" in ended.stderr


def test_slots_that_are_not_the_engines_are_noticed(engines, start_router):
    """Law: a wrong B is told: the engine lets requests wait though the ledger sees free slots."""
    url = engines(ranks=1).ready["groups"][0][0]
    router = Router(start_router, [[url]], slots=2 * SLOTS)
    body = json.dumps({"model": "emulated", "prompt": "hi", "stream": True, "emulator": {"output_tokens": 100_000}})
    host = router.process.ready["listen"]
    request = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    with contextlib.ExitStack() as clients:
        for _ in range(SLOTS + 2):
            client = clients.enter_context(socket.create_connection(host.split(":")))
            client.sendall(request.encode())
        wait_until(lambda: f"its --max-num-seqs seems to be {SLOTS}; set slots to that" in router.log())


def test_policy_is_switched_while_requests_wait(engines, start_router):
    """Law: another policy takes over at once, or nothing changes and the reason is said."""
    url = engines(ranks=2).ready["groups"][0]
    router = Router(start_router, [url])
    status, body = call(f"{router.admin}/policy", "PUT", {"name": "br_0", "r_max": 8})
    assert (status, body["policy"]["name"], body["policy"]["r_max"]) == (200, "br_0", "8")
    assert call(f"{router.admin}/debug/ledger")[1]["fleets"][0]["policy"] == "br_0"
    assert router.complete() == 200
    for wrong, reason in [({"name": "br_9"}, 'name = "br_9"'), ({"nmae": "br_0"}, "did you mean name?"),
                          ({"name": "br_h", "gamma": 2}, "gamma = 2")]:
        status, body = call(f"{router.admin}/policy", "PUT", wrong)
        assert status == 400
        assert reason in body["error"]["message"]
    assert call(f"{router.admin}/policy")[1]["fleets"][0]["policy"]["name"] == "br_0"


def test_effective_settings_have_origins(engines, start_router):
    """Law: GET /config tells each value and where it comes from."""
    router = Router(start_router, [engines(ranks=1).ready["groups"][0]])
    settings = call(f"{router.admin}/config")[1]["settings"]
    assert settings["health.interval_ms"]["value"] == "20"
    assert settings["health.interval_ms"]["origin"].startswith(router.path)
    assert settings["health.timeout_ms"]["origin"] == "default"


def test_hangup_reads_the_file_again(engines, start_router):
    """Law: workers, policy and waits follow the file; what is not in it any more drains and leaves."""
    urls = engines(ranks=2).ready["groups"][0]
    router = Router(start_router, [[urls[0]]], reload_on_change=False)
    config = json.loads(json.dumps(router.config))
    config["fleets"][0]["policy"] = {"name": "least_tokens"}
    config["fleets"][0]["groups"][0]["workers"] = [{"url": urls[1]}]
    config["timeouts"] = {"admission_ms": 1234}
    router.rewrite(config)
    router.process.signal(signal.SIGHUP)
    wait_until(lambda: [worker["url"] for worker in router.workers()] == [urls[1]])
    wait_until(lambda: router.state(urls[1]) == "ready")
    assert router.complete() == 200
    assert call(f"{router.admin}/policy")[1]["fleets"][0]["policy"]["name"] == "least_tokens"
    assert call(f"{router.admin}/config")[1]["settings"]["timeouts.admission_ms"]["value"] == "1234"


def test_changed_file_is_read_again(engines, start_router):
    """Law: without a signal too, unless that is switched off."""
    urls = engines(ranks=2).ready["groups"][0]
    router = Router(start_router, [[urls[0]]])
    config = json.loads(json.dumps(router.config))
    config["fleets"][0]["groups"][0]["workers"].append({"url": urls[1]})
    router.rewrite(config)
    wait_until(lambda: router.state(urls[1]) == "ready")
    wait_until(lambda: "reloaded " in router.log())


def test_reload_is_refused_whole(engines, start_router):
    """Law: a file with one wrong value, or one that needs a restart, changes nothing, and the log says why."""
    urls = engines(ranks=2).ready["groups"][0]
    router = Router(start_router, [[urls[0]]], reload_on_change=False)
    added = {"url": urls[1]}
    invalid = json.loads(json.dumps(router.config))
    invalid["fleets"][0]["groups"][0]["workers"].append(added)
    invalid["health"]["unhealthy_after"] = 0
    needs_restart = json.loads(json.dumps(router.config))
    needs_restart["fleets"][0]["groups"][0]["workers"].append(added)
    needs_restart["fleets"][0]["groups"][0]["slots"] = 9
    for config, reason in [(invalid, "health.unhealthy_after = 0: expected 1..1000"),
                           (needs_restart, "takes effect only at a start: fleets[0].groups[0].slots")]:
        router.rewrite(config)
        router.process.signal(signal.SIGHUP)
        wait_until(lambda: reason in router.log())
        assert [worker["url"] for worker in router.workers()] == [urls[0]]
    assert router.complete() == 200


def test_check_of_a_live_fleet(run, engines, tmp_path):
    """Law: check names what must be put right with what to set, and exits with 1; a fleet that fits exits with 0."""
    url = engines(ranks=2, ranks_per_port=2, kv_capacity_tokens=16_000).ready["groups"][0][0]

    def check(worker: dict, more: dict | None = None):
        path = tmp_path / "check.yaml"
        path.write_text(json.dumps({"fleets": [{**(more or {}), "groups": [
            {"name": "g", "slots": SLOTS, "kv_capacity_tokens": 16_000, "workers": [worker]}]}]}))
        return run("check", "--config", path)

    good = check({"url": url, "ranks": 2, "addressing": "header"})
    assert good.returncode == 0, good.stdout + good.stderr
    assert f"ok     {url}  answers" in good.stdout
    for worker, more, what, advice in [
        ({"url": url}, {}, "2 ranks share this address", "set ranks: 2 and addressing: header"),
        ({"url": url, "ranks": 2, "addressing": "header", "start_rank": 4}, {}, "has no rank 4; it has 0 to 1",
         "set start_rank: 0"),
        ({"url": "http://127.0.0.1:1"}, {}, "Connection refused", "start the engine, or correct its url"),
        ({"url": url, "ranks": 2, "addressing": "header"}, {"models": [{"name": "llama"}]}, "and not llama",
         "correct models[].name"),
    ]:
        wrong = check(worker, more)
        assert wrong.returncode == 1
        assert "WRONG" in wrong.stdout
        assert what in wrong.stdout
        assert advice in wrong.stdout
        assert "must be put right" in wrong.stderr


def test_queries_that_are_no_text_name_no_worker(start_router):
    """Law: a command whose query is no UTF-8 is answered like one for a worker that is not there."""
    router = Router(start_router, [["http://127.0.0.1:9"]])
    status, body = call(f"{router.admin}/workers?url=%ff%fe", "DELETE")
    assert (status, body["error"]["code"]) == (404, "unknown_worker")
