"""Many streams at once: each takes little memory. The full figures are scripts/streams'."""

import ssl

import pytest

import stream_load
from certificates import Authority

STREAMS = [500, 2000]
# Sanitizers, allocators and a loaded machine may add to what docs/performance.md has; a leak or a buffer adds more.
PLAINTEXT_BYTES = 24 * 1024
TLS_BYTES = 80 * 1024


@pytest.fixture
def enough_descriptors():
    needed, allowed = stream_load.descriptors_needed(STREAMS[-1]), stream_load.descriptors_allowed()
    if allowed < needed:
        pytest.skip(f"{needed} descriptors are needed, {allowed} are allowed")


def test_plaintext_streams_take_little_memory(binary, tmp_path, enough_descriptors):
    """Law: between 500 and 2000 streams each takes less than 24 KiB of the router."""
    figures = stream_load.measure(binary, tmp_path, STREAMS)
    assert stream_load.slope(figures) < PLAINTEXT_BYTES, figures


def test_tls_streams_take_little_memory(binary, tmp_path, enough_descriptors):
    """Law: the same by TLS towards clients, of 80 KiB."""
    authority = Authority(tmp_path)
    context = ssl.create_default_context(cafile=authority.ca)
    figures = stream_load.measure(binary, tmp_path, STREAMS, authority.issue().settings(), context)
    assert stream_load.slope(figures) < TLS_BYTES, figures
