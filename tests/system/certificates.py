"""Certificates that a test makes for itself, with the openssl command."""

import dataclasses
import pathlib
import ssl
import subprocess


@dataclasses.dataclass
class Certificate:
    chain: pathlib.Path
    key: pathlib.Path

    def settings(self) -> dict[str, str]:
        return {"certificate": str(self.chain), "key": str(self.key)}

    def server_context(self, client_ca: pathlib.Path | None = None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain, self.key)
        if client_ca:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def put_in_place_of(self, other: "Certificate") -> None:
        """As an operator or cert-manager does it: each file at once."""
        self.chain.rename(other.chain)
        self.key.rename(other.key)


def openssl(*arguments: object) -> str:
    ended = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ended.returncode == 0, f"openssl {arguments[0]}: {ended.stderr}"
    return ended.stdout


class Authority:
    """Signs certificates that whoever trusts `ca` takes for good."""

    def __init__(self, folder: pathlib.Path, name: str = "ca"):
        self._folder = folder
        self._key = folder / f"{name}.key"
        self._count = 0
        self._name = name
        self.ca = folder / f"{name}.pem"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 2,
                "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.ca)

    def issue(self, alternative_name: str = "IP:127.0.0.1", days: int = 1) -> Certificate:
        self._count += 1
        stem = self._folder / f"{self._name}-{self._count}"
        made = Certificate(stem.with_suffix(".pem"), stem.with_suffix(".key"))
        request, extensions = stem.with_suffix(".csr"), stem.with_suffix(".ext")
        extensions.write_text(f"subjectAltName={alternative_name}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=test",
                "-keyout", made.key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._key, "-days", days,
                "-set_serial", self._count, "-extfile", extensions, "-out", made.chain)
        return made
