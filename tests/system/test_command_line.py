"""What the command line promises to scripts that call it."""

import re
import subprocess

import pytest

from places import ROOT


def test_version_is_that_of_the_project(run):
    """Law: `--version` prints one line, `balanceroute` and the version in CMakeLists.txt, and exits with 0."""
    version = re.search(r"^project\(balanceroute VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    ended = run("--version")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"balanceroute {version[1]}\n", "")


@pytest.mark.parametrize("level", [(), ("config",), ("config", "check"), ("config", "show")])
def test_help_on_every_level(run, level):
    """Law: `--help` prints the usage of the command it is given to on stdout and exits with 0."""
    ended = run(*level, "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"Usage: {' '.join(('balanceroute', *level))} " in ended.stdout


@pytest.mark.parametrize("arguments, message", [
    ((), "no command: expected one of "),
    (("confg",), "confg: unknown command; did you mean config?"),
    (("config", "check", "--confg", "x"), "--confg: unknown flag; did you mean --config?"),
    (("config", "check"), "--config is required"),
    (("config", "check", "--config", "x", "--limits-connections", "-1"),
     "--limits-connections = -1: expected 1..10000000 or auto"),
])
def test_mistakes_exit_with_2(run, arguments, message):
    """Law: a mistake on the command line is one line and a hint on stderr, nothing on stdout, exit code 2."""
    ended = run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    what, hint = ended.stderr.splitlines()
    assert what.startswith(f"balanceroute: {message}")
    assert hint.startswith("Try 'balanceroute") and hint.endswith("--help'.")


def test_result_that_cannot_be_written_is_a_failure(binary):
    """Law: a result that does not reach its reader is a failed run, exit code 1."""
    with open("/dev/full", "wb") as full:
        ended = subprocess.run([binary, "config", "reference"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (1, "balanceroute: standard output: cannot be written to\n")
