"""TLS at the real binary: towards clients and operators, towards engines, and certificates that change."""

import contextlib
import json
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import time
import urllib.request

import openai
import pytest

import upstream
from certificates import Authority
from fleets import wait_until

ANSWER = upstream.whole_answer(json.dumps({
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode())
WORDS = [f"word{i} " for i in range(200)]
STREAM = upstream.streamed_answer([
    *(b"data: " + json.dumps({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                              "choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]}).encode()
      + b"\n\n" for word in WORDS),
    b"data: [DONE]\n\n"])
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def authority(tmp_path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def start_engine():
    """start_engine(context): an engine that answers ANSWER, by TLS if there is a context."""
    with contextlib.ExitStack() as stack:
        def start(context: ssl.SSLContext | None = None) -> upstream.RecordingEngine:
            engine = upstream.RecordingEngine(context)
            engine.answers = [ANSWER]
            stack.callback(engine.close)
            return engine

        yield start


def fleet(url: str, **settings) -> dict:
    return {"groups": [{"name": "g", "slots": 8, "workers": [{"url": url}]}], **settings}


def curl(url: str, *arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(["curl", "--silent", "--show-error", "--max-time", "10", *map(str, arguments), url],
                          capture_output=True, text=True)


def chat(url: str, *arguments: object) -> subprocess.CompletedProcess:
    return curl(f"{url}/v1/chat/completions", "--json", json.dumps(CHAT), *arguments)


def said_hi(ended: subprocess.CompletedProcess) -> bool:
    return ended.returncode == 0 and '"content": "hi"' in ended.stdout


def s_client(address: str, ca: pathlib.Path, *arguments: object) -> str:
    ended = subprocess.run(["openssl", "s_client", "-connect", address, "-CAfile", str(ca), "-verify_return_error",
                            *map(str, arguments)], capture_output=True, text=True, input="", timeout=20)
    return ended.stdout + ended.stderr


def serial_of(address: str) -> int:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as plain:
        with context.wrap_socket(plain) as secure:
            der = secure.getpeercert(binary_form=True)
    text = subprocess.run(["openssl", "x509", "-inform", "DER", "-noout", "-serial"], input=der, capture_output=True)
    return int(text.stdout.decode().strip().removeprefix("serial="), 16)


def expires_in(admin: str, owner: str) -> float:
    with urllib.request.urlopen(f"http://{admin}/metrics", timeout=10) as page:
        text = page.read().decode()
    return float(re.search(rf'balanceroute_tls_certificate_expires_seconds{{of="{owner}"}} (\S+)', text).group(1))


def test_clients_speak_tls(start_router, start_engine, authority):
    """Law: curl and OpenAI's client get answers and streams by TLS; HTTP/1.1 is what ALPN agrees on, h2 alone, old
    versions and plaintext are refused; the engine is told nothing of it."""
    engine = start_engine()
    certificate = authority.issue()
    router = start_router({"tls": certificate.settings(), "fleets": [fleet(engine.url)]})
    address = router.ready["listen"]
    assert said_hi(chat(f"https://{address}", "--cacert", authority.ca))
    assert chat(f"https://{address}").returncode == 60  # nobody vouches for it
    assert "ALPN protocol: http/1.1" in s_client(address, authority.ca, "-alpn", "h2,http/1.1")
    assert "no application protocol" in s_client(address, authority.ca, "-alpn", "h2")
    assert "Verify return code: 0 (ok)" in s_client(address, authority.ca, "-tls1_2")
    assert "alert protocol version" in s_client(address, authority.ca, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
    plain = curl(f"http://{address}/v1/models", "--include")
    assert plain.stdout.startswith("HTTP/1.1 400 ") and "only TLS is spoken here, expected https://" in plain.stdout

    client = openai.OpenAI(base_url=f"https://{address}/v1", api_key="none", max_retries=0,
                           http_client=openai.DefaultHttpxClient(verify=ssl.create_default_context(cafile=authority.ca)))
    assert client.chat.completions.create(**CHAT).choices[0].message.content == "hi"
    engine.answers = [STREAM]
    with client.chat.completions.create(**CHAT, stream=True) as events:
        assert [event.choices[0].delta.content for event in events if event.choices] == WORDS
    body = {**CHAT, "messages": [{"role": "user", "content": "x" * 3_000_000}]}  # many records
    engine.answers = [ANSWER]
    assert client.chat.completions.create(**body).choices[0].message.content == "hi"
    client.close()
    wait_until(lambda: "no shared cipher" in router.log.read_text() or "unsupported protocol" in router.log.read_text(),
               "the log says why a client came to no session")
    assert 80_000 < expires_in(router.ready["admin"], "listen") < 90_000


def test_newest_version_alone(start_router, start_engine, authority):
    """Law: min_version 1.3 refuses 1.2."""
    router = start_router({"tls": {**authority.issue().settings(), "min_version": "1.3"},
                           "fleets": [fleet(start_engine().url)]})
    url = f"https://{router.ready['listen']}"
    assert said_hi(chat(url, "--cacert", authority.ca))
    assert chat(url, "--cacert", authority.ca, "--tls-max", "1.2").returncode == 35


def test_clients_show_certificates(start_router, start_engine, authority, tmp_path):
    """Law: with client_ca only who has a certificate of it is let in; the admin listener has its own."""
    engine = start_engine()
    stranger = Authority(tmp_path, "stranger").issue()
    friend = authority.issue()
    router = start_router({
        "tls": {**authority.issue().settings(), "client_ca": str(authority.ca)},
        "admin": {"listen": "127.0.0.1:0", "token": "secret", "tls": authority.issue().settings()},
        "fleets": [fleet(engine.url)]})
    url = f"https://{router.ready['listen']}"
    trust = ["--cacert", authority.ca]
    assert said_hi(chat(url, *trust, "--cert", friend.chain, "--key", friend.key))
    assert not said_hi(chat(url, *trust))
    assert not said_hi(chat(url, *trust, "--cert", stranger.chain, "--key", stranger.key))
    assert engine.received.qsize() == 1
    admin = f"https://{router.ready['admin']}/workers"
    assert '"state"' in curl(admin, *trust, "--header", "Authorization: Bearer secret").stdout
    assert "unauthorized" in curl(admin, *trust).stdout
    assert "secret" not in router.log.read_text()


def test_engines_speak_tls(run, start_router, start_engine, authority, tmp_path):
    """Law: an https engine is asked by TLS on connections that are used again, if its certificate is of the ca and has
    its name; it sees our certificate. check agrees."""
    ours = authority.issue()
    engine = start_engine(authority.issue().server_context(client_ca=authority.ca))
    assert engine.url.startswith("https://")
    tls = {"ca": str(authority.ca), **ours.settings()}
    router = start_router({"fleets": [fleet(engine.url, tls=tls)]})
    for _ in range(5):
        assert said_hi(chat(f"http://{router.ready['listen']}"))
    assert engine.received.qsize() == 5
    asked_by = {request.connection for request in engine.received.queue}
    assert len(asked_by) == 1
    assert 80_000 < expires_in(router.ready["admin"], "fleet default") < 90_000
    engine.answers = [STREAM]
    ended = curl(f"http://{router.ready['listen']}/v1/chat/completions", "--json", json.dumps({**CHAT, "stream": True}))
    assert ended.stdout.count("data: ") == len(WORDS) + 1

    ended = run("check", "--config", router.command[-1])
    assert f"ok     {engine.url}" in ended.stdout
    config = tmp_path / "without.yaml"
    config.write_text(json.dumps({"fleets": [fleet(engine.url, tls={"ca": str(authority.ca)})]}))
    assert run("check", "--config", config).returncode == 1


def test_engines_must_be_who_they_say(run, start_router, start_engine, authority, tmp_path):
    """Law: nothing is sent to an engine with a foreign, expired or misnamed certificate, and the reason is told; its name
    may be another one than its URL's if server_name says so."""
    stranger = Authority(tmp_path, "stranger")
    trust = {"ca": str(authority.ca)}
    cases = [(stranger.issue(), trust, "unable to get local issuer certificate"),
             (authority.issue(days=-1), trust, "certificate has expired"),
             (authority.issue("DNS:elsewhere.example"), trust, "IP address mismatch"),
             (authority.issue("DNS:a.example"), {**trust, "server_name": "b.example"}, "hostname mismatch"),
             (authority.issue("DNS:a.example"), {**trust, "server_name": "a.example"}, None)]
    for certificate, tls, reason in cases:
        engine = start_engine(certificate.server_context())
        router = start_router({"fleets": [fleet(engine.url, tls=tls)]})
        ended = chat(f"http://{router.ready['listen']}")
        checked = run("check", "--config", router.command[-1])
        if reason is None:
            assert said_hi(ended)
            assert engine.server_names == ["a.example"] * len(engine.server_names) and engine.server_names
            continue
        assert '"error"' in ended.stdout
        assert engine.received.empty() and not engine.asked
        wait_until(lambda: reason in router.log.read_text(), f"the log says {reason}")
        assert checked.returncode == 1 and reason in checked.stdout


def test_certificates_change_while_it_runs(start_router, start_engine, authority):
    """Law: other files are in effect for new connections, by themselves and by SIGHUP, while a connection that is there
    goes on; files that do not fit together are refused whole; one that has expired is told."""
    certificate = authority.issue()
    router = start_router({"tls": certificate.settings(), "fleets": [fleet(start_engine().url)]})
    address = router.ready["listen"]
    assert serial_of(address) == 1
    context = ssl.create_default_context(cafile=authority.ca)
    with openai.DefaultHttpxClient(verify=context) as old:
        assert old.get(f"https://{address}/health/live").status_code == 200
        authority.issue().put_in_place_of(certificate)
        wait_until(lambda: serial_of(address) == 2, "the new certificate is shown")
        assert "certificate of listen" in router.log.read_text()
        assert old.get(f"https://{address}/health/live").status_code == 200

    foreign = authority.issue()  # 3
    foreign.key.rename(certificate.key)
    wait_until(lambda: f"tls.key = {certificate.key}: is not the key of the certificate" in router.log.read_text(),
               "the log says that the key does not fit")
    assert serial_of(address) == 2
    foreign.chain.rename(certificate.chain)
    router.signal(signal.SIGHUP)
    wait_until(lambda: serial_of(address) == 3, "the third certificate is shown")

    authority.issue(days=-1).put_in_place_of(certificate)
    wait_until(lambda: "the certificate of listen has expired" in router.log.read_text(), "the log warns")
    assert expires_in(router.ready["admin"], "listen") < 0


def test_faulty_files_are_a_faulty_configuration(run, authority, tmp_path):
    """Law: each fault of a certificate's files is told by setting, file and what was expected, with exit code 2."""
    good, other = authority.issue(), authority.issue()
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate")
    nowhere = tmp_path / "nowhere.pem"
    cases = [({"certificate": str(nowhere), "key": str(good.key)}, f"tls.certificate = {nowhere}: cannot be read: No such"),
             ({"certificate": str(garbage), "key": str(good.key)}, f"tls.certificate = {garbage}: expected a certificate"),
             ({"certificate": str(good.chain), "key": str(garbage)}, f"tls.key = {garbage}: expected a private key in PEM"),
             ({"certificate": str(good.chain), "key": str(other.key)}, f"tls.key = {other.key}: is not the key of"),
             ({"certificate": str(good.chain)}, "tls.key = '': expected a file beside certificate"),
             ({"client_ca": str(authority.ca)}, "tls.certificate = '': expected a file beside key"),
             ({**good.settings(), "client_ca": str(garbage)}, f"tls.client_ca = {garbage}: expected certificates in PEM"),
             ({**good.settings(), "min_version": "1.1"}, "tls.min_version")]
    config = tmp_path / "router.yaml"
    for place in ("tls", "admin", "fleet"):
        for settings, message in cases:
            if place == "fleet" and ("client_ca" in settings):
                continue
            worker = {"tls": settings} if place == "fleet" else {}
            config.write_text(json.dumps({
                **({"tls": settings} if place == "tls" else {}),
                **({"admin": {"tls": settings}} if place == "admin" else {}),
                "fleets": [fleet("http://127.0.0.1:9", **worker)]}))
            ended = run("config", "check", "--config", config)
            path = {"tls": "", "admin": "admin.", "fleet": "fleets[0]."}[place]
            assert ended.returncode == 2, (place, settings)
            assert path + message in ended.stderr, (place, settings, ended.stderr)


def test_handshakes_have_a_time_limit(start_router, start_engine, authority):
    """Law: who connects and says nothing, or stops in the middle of a handshake, is cut after timeouts.head_ms."""
    router = start_router({"tls": authority.issue().settings(), "timeouts": {"head_ms": 300},
                           "fleets": [fleet(start_engine().url)]})
    host, port = router.ready["listen"].rsplit(":", 1)
    for beginning in (b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
        with socket.create_connection((host, int(port)), timeout=10) as silent:
            silent.sendall(beginning)
            began = time.monotonic()
            assert silent.recv(100) == b""
            assert 0.25 < time.monotonic() - began < 5
    wait_until(lambda: router.log.read_text().count("it took too long") == 2, "the log tells of both")
