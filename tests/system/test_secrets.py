"""What nobody may read in what the router writes: keys, tokens, passwords in URLs, prompts and answers."""

import contextlib
import hashlib
import json
import subprocess

import pytest

import upstream
from fleets import wait_until

ANSWER_WORD = "planted-answer"
PROMPT_WORD = "planted-prompt"
ANSWER = upstream.whole_answer(json.dumps({
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER_WORD}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode())
PLANTED = {name: f"planted-{name}-secret" for name in
           ("client", "stranger", "engine", "admin", "wrong-admin", "password", "query", "cookie", "variable")}


@pytest.fixture
def start_engine():
    with contextlib.ExitStack() as stack:
        def start(*answers: list[bytes]) -> upstream.RecordingEngine:
            engine = upstream.RecordingEngine()
            engine.answers = list(answers)
            stack.callback(engine.close)
            return engine

        yield start


def curl(url: str, *arguments: str) -> str:
    ended = subprocess.run(["curl", "--silent", "--include", "--max-time", "10", *arguments, url], capture_output=True,
                           text=True)
    return ended.stdout + ended.stderr


def bearer(name: str) -> list[str]:
    return ["--header", f"Authorization: Bearer {PLANTED[name]}"]


def test_secrets_stay_secret(run, start_router, start_engine, tmp_path):
    """Law: at the most talkative log level, whatever goes wrong, no secret and no content of a request is in the log, on
    standard output, in settings, metrics, the ledger, explanations or errors; the engine alone sees its key."""
    good, broken = start_engine(ANSWER), start_engine([b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"])
    keys, engine_key = tmp_path / "keys.yaml", tmp_path / "engine.key"
    digest = hashlib.sha256(PLANTED["client"].encode()).hexdigest()
    keys.write_text(json.dumps({"keys": [{"name": "alice", "sha256": digest}]}))
    engine_key.write_text(PLANTED["engine"])

    def group(url: str) -> dict:
        return {"groups": [{"name": "g", "slots": 8, "workers": [{"url": url}]}]}

    router = start_router({
        "log_level": "debug", "keys": {"file": str(keys)},
        "admin": {"listen": "127.0.0.1:0", "token": PLANTED["admin"]},
        "fleets": [{"name": "good", "models": [{"name": "m"}], "engine_key": {"file": str(engine_key)}, **group(good.url)},
                   {"name": "broken", "models": [{"name": "b"}], "engine_key": {"variable": "PLANTED_KEY"},
                    **group(broken.url)}]}, environment={"PLANTED_KEY": PLANTED["variable"]})
    clients, admin = f"http://{router.ready['listen']}", f"http://{router.ready['admin']}"
    seen = []

    def ask(path: str, body: object, *arguments: str) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        seen.append(curl(f"{clients}{path}", "--json", text, "--header", f"Cookie: {PLANTED['cookie']}", *arguments))

    prompt = {"model": "m", "messages": [{"role": "user", "content": PROMPT_WORD}]}
    answered = curl(f"{clients}/v1/chat/completions?api_key={PLANTED['query']}", "--json", json.dumps(prompt),
                    *bearer("client"))
    assert ANSWER_WORD in answered
    ask("/v1/chat/completions", {**prompt, "model": "b"}, *bearer("client"))
    ask("/v1/chat/completions", {**prompt, "model": "unknown"}, *bearer("client"))
    ask("/v1/chat/completions", prompt, *bearer("stranger"))
    ask("/v1/messages", prompt, "--header", f"x-api-key: {PLANTED['stranger']}")
    ask("/v1/chat/completions", json.dumps(prompt)[:-2], *bearer("client"))  # no JSON
    ask("/v1/chat/completions", {**prompt, "kv_transfer_params": {"x": PROMPT_WORD}}, *bearer("client"))
    ask(f"/sleep?token={PLANTED['query']}", prompt, *bearer("client"))
    ask("/v1/chat/completions", prompt, *bearer("client"), "--header", f"Transfer-Encoding: {PLANTED['query']}")
    ask("/v1/embeddings", {"model": "b", "input": PROMPT_WORD}, *bearer("client"))
    assert good.received.get(timeout=10).head.count(PLANTED["engine"].encode()) == 1

    for arguments in (bearer("admin"), bearer("wrong-admin"), []):
        for path in ("/metrics", "/config", "/workers", "/debug/ledger", "/debug/explain?prompt_tokens=10", "/policy",
                     "/health/ready"):
            seen.append(curl(f"{admin}{path}", *arguments))
        for url in (f"http://user:{PLANTED['password']}@127.0.0.1:9", f"http://{PLANTED['password']}@[::1]:9/x"):
            seen.append(curl(f"{admin}/workers", "--json", json.dumps({"fleet": "good", "group": "g", "url": url}),
                             *arguments))
    config = tmp_path / "router-0.yaml"
    settings = json.loads(config.read_text())
    settings["fleets"][0]["groups"][0]["workers"].append({"url": f"http://user:{PLANTED['password']}@127.0.0.1:9"})
    settings["fleets"][0]["groups"][0]["discovery"] = {"source": "dns", "dns_name": f"u:{PLANTED['password']}@host:1"}
    config.write_text(json.dumps(settings))
    wait_until(lambda: "reload refused" in router.log.read_text(), "the other configuration is refused")
    for command in ("check", "show"):
        ended = run("config", command, "--config", config)
        seen.append(ended.stdout + ended.stderr)
    assert router.terminate() == 0

    everything = "\n".join([router.output().partition("\n")[2], *seen])
    found = [word for word in (*PLANTED.values(), digest, PROMPT_WORD, ANSWER_WORD) if word in everything]
    assert not found, everything
    assert "path=/v1/chat/completions" in everything and "***@127.0.0.1:9" in everything  # looked in the right place
