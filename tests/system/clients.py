"""Clients that run a scenario against a server and say what they made of the answer, all in the same words."""

import json
import pathlib
import platform
import subprocess
import threading

import openai

from scenarios import EXTENSIONS, Answer, Scenario

NODE_FOLDER = pathlib.Path(__file__).parent / "node"
CLIENT_SECONDS = 20


def node_binary() -> pathlib.Path:
    """The Node that tests/system/node/package-lock.json pins."""
    architecture = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
    return NODE_FOLDER / f"node_modules/node-linux-{architecture}/bin/node"


class PythonSdk:
    name = "python"

    def __init__(self, url: str):
        self._sdk = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=CLIENT_SECONDS)

    def run(self, scenario: Scenario, model: str) -> Answer:
        members = {"model": model, **scenario.body}
        known = {name: value for name, value in members.items() if name not in EXTENSIONS}
        extra = {name: value for name, value in members.items() if name in EXTENSIONS}
        try:
            if scenario.api == "unknown_path":
                return Answer(200, body=self._sdk.post("/unknown", body=members, cast_to=object))
            create = {"chat": self._sdk.chat.completions, "completions": self._sdk.completions}[scenario.api].create
            answer = create(**known, extra_body=extra)
            if isinstance(answer, openai.Stream):
                return Answer(200, events=[event.to_dict() for event in answer])
            return Answer(200, body=answer.to_dict())
        except openai.APIStatusError as refusal:
            return Answer(refusal.status_code, error=refusal.message)


class NodeSdk:
    """One Node process for all scenarios of a server: a line of JSON in, a line of JSON out."""

    name = "node"

    def __init__(self, url: str):
        self._child = subprocess.Popen([node_binary(), NODE_FOLDER / "client.mjs", f"{url}/v1"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def run(self, scenario: Scenario, model: str) -> Answer:
        return Answer(**self.ask({"do": "run", "api": scenario.api, "body": {"model": model, **scenario.body}}))

    def ask(self, command: dict) -> dict:
        self._child.stdin.write(json.dumps(command) + "\n")
        guard = threading.Timer(CLIENT_SECONDS, self._child.kill)
        guard.start()
        line = self._child.stdout.readline()
        guard.cancel()
        if not line:
            raise AssertionError(f"the Node client ended or said nothing for {CLIENT_SECONDS} s: {command}")
        return json.loads(line)

    def close(self) -> None:
        self._child.stdin.close()
        self._child.wait(CLIENT_SECONDS)


class Curl:
    """No SDK at all: the bytes of the answer, read as the documents of the API say."""

    name = "curl"

    def __init__(self, url: str):
        self._url = url

    def command(self, scenario: Scenario, model: str, *flags: str) -> list[str]:
        path = {"chat": "chat/completions", "completions": "completions", "unknown_path": "unknown"}[scenario.api]
        body = json.dumps({"model": model, **scenario.body})
        return ["curl", "-sS", "--no-buffer", "--max-time", str(CLIENT_SECONDS), *flags,
                "-H", "Content-Type: application/json", "-d", body, f"{self._url}/v1/{path}"]

    def run(self, scenario: Scenario, model: str) -> Answer:
        command = self.command(scenario, model, "-w", "\n%{http_code} %{content_type}")
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        text, _, about = printed.rpartition("\n")
        status, kind = about.split(" ", 1)
        if status != "200":
            return Answer(int(status), error=json.loads(text)["error"]["message"])
        if kind.startswith("text/event-stream"):
            return Answer(200, events=self._events(text))
        return Answer(200, body=json.loads(text))

    @staticmethod
    def _events(text: str) -> list[dict]:
        events = text.split("\n\n")
        assert events[-2:] == ["data: [DONE]", ""], text[-200:]
        assert all(event.startswith("data: ") for event in events[:-1])
        return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


CLIENTS = {client.name: client for client in (PythonSdk, NodeSdk, Curl)}
