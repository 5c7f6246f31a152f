"""Clients with keys at the real binary: drawn keys, who is let in, what the engine sees, files that change."""

import hashlib
import json
import pathlib
import re
import subprocess
import time

import openai
import pytest

import upstream
from places import ROOT

ANSWER = upstream.whole_answer(json.dumps({
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode())
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def wait_until(condition, seconds: float = 10.0) -> None:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "the condition did not come true"
        time.sleep(0.005)


def curl(url: str, *arguments: str) -> tuple[int, dict[str, str], dict]:
    """Status, headers in lower case and JSON of an answer."""
    ended = subprocess.run(["curl", "--silent", "--show-error", "--include", "--max-time", "10", *arguments, url],
                           capture_output=True, check=True)
    head, _, body = ended.stdout.decode().partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(status.split()[1]), headers, json.loads(body)


@pytest.fixture
def draw(run):
    """draw("alice"): her key and the lines of its entry, as the command prints them."""

    def draw_key(name: str) -> tuple[str, str]:
        ended = run("key", name)
        assert (ended.returncode, ended.stderr) == (0, "")
        key, entry = re.fullmatch(r"key: (\S+)\nentry:\n(.*)", ended.stdout, re.DOTALL).groups()
        return key, entry

    return draw_key


@pytest.fixture
def engine():
    recorder = upstream.RecordingEngine()
    recorder.answers = [ANSWER]
    yield recorder
    recorder.close()


class Router:
    """A router with a keys file in front of one engine."""

    def __init__(self, start_router, keys: pathlib.Path, engine_url: str, **settings):
        self.process = start_router({
            "keys": {"file": str(keys)},
            "fleets": [{"groups": [{"name": "g", "slots": 8, "workers": [{"url": engine_url}]}]}],
            **settings})
        self.url = f"http://{self.process.ready['listen']}"
        self.admin = f"http://{self.process.ready['admin']}"

    def log(self) -> str:
        return self.process.log.read_text()

    def chat(self, key: str | None) -> tuple[int, dict[str, str], dict]:
        bearer = ["--header", f"Authorization: Bearer {key}"] if key else []
        return curl(f"{self.url}/v1/chat/completions", "--json", json.dumps(CHAT), *bearer)

    def client(self, key: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0)


def test_key_command_draws_a_key(run, draw):
    """Law: two keys are never the same; an entry has the key's hash and not the key; a name must be one."""
    key, entry = draw("alice")
    assert f"sha256: {hashlib.sha256(key.encode()).hexdigest()}" in entry
    assert key not in entry
    assert draw("alice")[0] != key
    refused = run("key", "no name")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "name: expected up to 64 letters" in refused.stderr


def test_example_is_valid(run):
    """Law: the example of a router with keys is one that the router takes."""
    ended = run("config", "check", "--config", "examples/keys/router.yaml", cwd=ROOT)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_faulty_keys_file_is_a_faulty_configuration(run, tmp_path):
    """Law: config check and serve refuse a faulty keys file by place, with exit code 2, and do not repeat what is in it."""
    keys = tmp_path / "keys.yaml"
    keys.write_text("keys:\n  - name: alice\n    sha256: my-secret\n")
    config = tmp_path / "router.yaml"
    config.write_text(json.dumps({"keys": {"file": str(keys)}, "fleets": [{"groups": [
        {"name": "g", "slots": 8, "workers": [{"url": "http://127.0.0.1:9"}]}]}]}))
    for command in (["config", "check"], ["serve"]):
        ended = run(*command, "--config", config)
        assert ended.returncode == 2
        assert f"keys.file: {keys}: keys[0].sha256: expected the SHA-256 of a key" in ended.stderr
        assert "my-secret" not in ended.stderr + ended.stdout


def test_only_known_keys_are_let_in(start_router, draw, engine, tmp_path):
    """Law: curl and OpenAI's client are let in with their key alone; the engine, the log and the settings know no key."""
    key, entry = draw("alice")
    keys = tmp_path / "keys.yaml"
    keys.write_text("keys:\n" + entry)
    router = Router(start_router, keys, engine.url)

    status, headers, body = router.chat(None)
    assert (status, headers["www-authenticate"], body["error"]["code"]) == (401, "Bearer", "missing_api_key")
    assert router.chat("br-wrong")[0] == 401
    with pytest.raises(openai.AuthenticationError) as refusal:
        router.client("br-wrong").chat.completions.create(**CHAT)
    assert refusal.value.code == "invalid_api_key"
    with pytest.raises(openai.AuthenticationError):
        router.client("br-wrong").models.list()
    status, _, body = curl(f"{router.url}/v1/messages", "--json", json.dumps(CHAT), "--header", "x-api-key: wrong")
    assert (status, body["type"], body["error"]["type"]) == (401, "error", "authentication_error")
    assert curl(f"{router.url}/health/live")[0] == 200
    assert engine.received.empty()

    assert router.client(key).chat.completions.create(**CHAT).choices[0].message.content == "hi"
    assert router.chat(key)[0] == 200
    for _ in range(2):
        head = engine.received.get(timeout=10).head.lower()
        assert b"authorization" not in head
        assert key.encode() not in head
    wait_until(lambda: router.log().count("tenant=alice ") == 2)
    settings = curl(f"{router.admin}/config")[2]["settings"]
    assert settings["keys.file"]["value"] == str(keys)
    digest = hashlib.sha256(key.encode()).hexdigest()
    for text in (router.log(), json.dumps(settings)):
        assert key not in text
        assert digest not in text


def test_limits_are_told_to_clients(start_router, draw, engine, tmp_path):
    """Law: OpenAI's client sees a rate limit, with when to come back; another key is let in."""
    slow, entry_of_slow = draw("slow")
    other, entry_of_other = draw("other")
    keys = tmp_path / "keys.yaml"
    keys.write_text("keys:\n" + entry_of_slow + "    requests_per_minute: 2\n" + entry_of_other)
    router = Router(start_router, keys, engine.url)
    for _ in range(2):
        router.client(slow).chat.completions.create(**CHAT)
    with pytest.raises(openai.RateLimitError) as refusal:
        router.client(slow).chat.completions.create(**CHAT)
    assert refusal.value.code == "rate_limit_exceeded"
    assert 1 <= int(refusal.value.response.headers["retry-after"]) <= 60
    assert router.chat(other)[0] == 200


def test_engines_see_their_own_key(run, start_router, draw, engine, tmp_path):
    """Law: an engine's key is in what it is sent, the client's is not; check brings it too; another file is followed."""
    key, entry = draw("alice")
    keys = tmp_path / "keys.yaml"
    keys.write_text("keys:\n" + entry)
    secret = tmp_path / "engine-key"
    secret.write_text("engine-secret\n")
    fleet = {"engine_key": {"file": str(secret)},
             "groups": [{"name": "g", "slots": 8, "workers": [{"url": engine.url}]}]}
    router = Router(start_router, keys, engine.url, fleets=[fleet])
    assert router.chat(key)[0] == 200
    head = engine.received.get(timeout=10).head
    assert b"\r\nAuthorization: Bearer engine-secret\r\n" in head + b"\r\n"
    assert key.encode() not in head
    secret.write_text("another-secret")
    wait_until(lambda: "engine key of fleet default" in router.log())
    assert router.chat(key)[0] == 200
    assert b"Authorization: Bearer another-secret" in engine.received.get(timeout=10).head
    assert "-secret" not in router.log() + json.dumps(curl(f"{router.admin}/config")[2])

    secret.write_text("")
    config = router.process.command[-1]
    for command in (["config", "check"], ["check"]):
        ended = run(*command, "--config", config)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert f"fleets[0].engine_key.file = {secret}: expected it to hold one key" in ended.stderr
    secret.write_text("engine-secret")
    run("check", "--config", config)
    asked = [request for request in engine.asked if b"engine-secret" in request]
    assert {request.split(b" ", 2)[1] for request in asked} >= {b"/health", b"/version", b"/v1/models", b"/metrics"}


def test_keys_file_is_followed(start_router, draw, engine, tmp_path):
    """Law: a changed file is in effect without a restart; a faulty one is refused whole and the keys of before go on."""
    first, entry_of_first = draw("first")
    second, entry_of_second = draw("second")
    keys = tmp_path / "keys.yaml"
    keys.write_text("keys:\n" + entry_of_first)
    router = Router(start_router, keys, engine.url)
    assert (router.chat(first)[0], router.chat(second)[0]) == (200, 401)
    keys.write_text("keys:\n" + entry_of_second)
    wait_until(lambda: "key second (new), key first (removed)" in router.log())
    assert (router.chat(first)[0], router.chat(second)[0]) == (401, 200)
    keys.write_text("")
    wait_until(lambda: "reload refused" in router.log())
    assert (router.chat(first)[0], router.chat(second)[0]) == (401, 200)
