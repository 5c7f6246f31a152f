"""What the command line promises to scripts that call it."""

import re

from conftest import ROOT


def test_version_is_that_of_the_project(run):
    """Law: `--version` prints one line, `balanceroute` and the version in CMakeLists.txt, and exits with 0."""
    version = re.search(r"^project\(balanceroute VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    ended = run("--version")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"balanceroute {version[1]}\n", "")
