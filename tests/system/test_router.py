"""The router in front of an emulated fleet, used as people use it: OpenAI's Python SDK and curl."""

import json
import signal
import subprocess
import threading
import time
import urllib.request

import openai
import pytest

RANKS = 2
SLOTS = 4


def fetch(url: str):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def wait_until(condition, seconds: float = 5.0) -> float:
    """Seconds until the condition held; fails the test if it never does."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "the condition did not come true"
    return time.monotonic() - began


class Fleet:
    """An emulated group and a router before it."""

    def __init__(self, start_emulator, start_router, policy: str = "br_0", **emulator):
        self.engines = start_emulator(ranks=RANKS, slots=SLOTS, fixed_ms=5, per_token_ms=0.0001, **emulator)
        self.workers = self.engines.ready["groups"][0]
        self.router = start_router({"fleets": [{
            "policy": {"name": policy},
            "groups": [{"name": "g", "slots": SLOTS, "workers": [{"url": url} for url in self.workers]}],
        }]})
        self.url = f"http://{self.router.ready['listen']}"
        self.admin = f"http://{self.router.ready['admin']}"
        self.model = self.engines.ready["model"]

    def client(self, **options) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, timeout=20, **options)

    def ledger(self) -> dict:
        return json.loads(fetch(f"{self.admin}/debug/ledger"))["fleets"][0]

    def stats(self) -> dict:
        return json.loads(fetch(f"{self.workers[0]}/emulator/stats"))

    def is_empty(self) -> bool:
        ledger = self.ledger()
        return ledger["leases_live"] == 0 and ledger["requests_live"] == 0 and ledger["requests_waiting"] == 0


@pytest.fixture
def fleet(start_emulator, start_router) -> Fleet:
    return Fleet(start_emulator, start_router)


def words(count: int) -> str:
    return "".join(f" t{i}" for i in range(count))


def asked(output: int) -> dict:
    return {"extra_body": {"emulator": {"prompt_tokens": 100, "output_tokens": output}}}


def test_chat_and_completions_through_the_sdk(fleet):
    client = fleet.client()
    chat = client.chat.completions.create(model=fleet.model, messages=[{"role": "user", "content": "hi"}], **asked(5))
    assert chat.choices[0].finish_reason == "stop"
    assert chat.usage.completion_tokens == 5
    text = client.completions.create(model=fleet.model, prompt="hi", max_tokens=3)
    assert text.choices[0].finish_reason == "length"
    assert text.usage.completion_tokens == 3
    wait_until(fleet.is_empty)


@pytest.mark.parametrize("usage", [False, True])
def test_streams_bring_every_token_once(fleet, usage):
    options = {"stream_options": {"include_usage": True}} if usage else {}
    stream = fleet.client().chat.completions.create(
        model=fleet.model, messages=[{"role": "user", "content": "hi"}], stream=True, **options, **asked(40))
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    direct = openai.OpenAI(base_url=f"{fleet.workers[0]}/v1", api_key="none").chat.completions.create(
        model=fleet.model, messages=[{"role": "user", "content": "hi"}], **asked(40))
    assert text == direct.choices[0].message.content
    assert [chunk.usage.completion_tokens for chunk in chunks if chunk.usage] == ([40] if usage else [])
    wait_until(fleet.is_empty)


def test_cancel_in_mid_stream_reaches_the_engine_at_once(fleet):
    stream = fleet.client().chat.completions.create(
        model=fleet.model, messages=[{"role": "user", "content": "hi"}], stream=True, **asked(100_000))
    next(iter(stream))
    wait_until(lambda: fleet.ledger()["leases_live"] == 1)
    stream.close()
    seconds = wait_until(lambda: fleet.stats()["client_closes"] == 1)
    print(f"the engine saw the close after {1000 * seconds:.0f} ms")
    wait_until(fleet.is_empty)
    assert fleet.stats()["active"] == 0


def test_timeout_of_a_client_that_waits_for_a_whole_answer_frees_its_slot(fleet):
    with pytest.raises(openai.APITimeoutError):
        fleet.client().with_options(timeout=0.3).completions.create(model=fleet.model, prompt="hi", **asked(100_000))
    wait_until(fleet.is_empty)
    wait_until(lambda: fleet.stats()["active"] == 0)


def test_curl_streams_and_is_cancelled(fleet, tmp_path):
    body = {"model": fleet.model, "prompt": "hi", "stream": True, "emulator": {"output_tokens": 10}}
    answer = subprocess.run(
        ["curl", "-sSN", "-H", "Content-Type: application/json", "-d", json.dumps(body), f"{fleet.url}/v1/completions"],
        capture_output=True, text=True, timeout=20, check=True).stdout
    assert answer.endswith("data: [DONE]\n\n")
    assert answer.count("data: ") == 11  # ten tokens, [DONE]

    body["emulator"]["output_tokens"] = 100_000
    curl = subprocess.Popen(
        ["curl", "-sSN", "-H", "Content-Type: application/json", "-d", json.dumps(body), f"{fleet.url}/v1/completions"],
        stdout=subprocess.PIPE)
    assert curl.stdout.readline().startswith(b"data: ")
    curl.kill()
    curl.wait()
    wait_until(lambda: fleet.stats()["client_closes"] == 1)
    wait_until(fleet.is_empty)


def test_more_requests_than_slots_wait_and_all_complete(fleet):
    results = []

    def ask(number: int):
        answer = fleet.client().completions.create(model=fleet.model, prompt="hi", **asked(5 + number % 7))
        results.append(answer.usage.completion_tokens)

    threads = [threading.Thread(target=ask, args=[number]) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(5 + number % 7 for number in range(40))
    wait_until(fleet.is_empty)


def test_errors_of_the_sdk_have_words(fleet):
    client = fleet.client()
    with pytest.raises(openai.BadRequestError, match="kv_transfer_params"):
        client.completions.create(model=fleet.model, prompt="x", extra_body={"kv_transfer_params": {}})
    with pytest.raises(openai.BadRequestError, match="slots"):
        client.completions.create(model=fleet.model, prompt="x", n=SLOTS + 1)
    with pytest.raises(openai.NotFoundError):
        client.completions.create(model="another", prompt="x")


def test_models_health_and_metrics(fleet):
    assert [model.id for model in fleet.client().models.list()] == [fleet.model]
    assert json.loads(fetch(f"{fleet.url}/health/ready"))["workers_ready"] == RANKS
    metrics = fetch(f"{fleet.admin}/metrics")
    assert metrics.count("balanceroute_worker_load_tokens{") == RANKS


def test_stops_on_sigterm_after_running_streams(fleet):
    stream = fleet.client().completions.create(model=fleet.model, prompt="x", stream=True, **asked(60))
    next(iter(stream))
    fleet.router.signal(signal.SIGTERM)
    chunks = list(stream)
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert fleet.router.wait() == 0
