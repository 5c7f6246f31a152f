"""Many requests, some of whose clients leave at any moment: each is answered or left, told once, and leaves nothing.

BALANCEROUTE_TRUTH_REQUESTS asks for another number of them than 300 a dialect.
"""

import json
import os
import random

import pytest

import fleets

REQUESTS = int(os.environ.pop("BALANCEROUTE_TRUTH_REQUESTS", 300))
RATE = 150
LEAVE_SHARE = 0.3


@pytest.fixture(scope="session")
def short_requests(tmp_path_factory):
    """A trace of prompts of up to 200 tokens and answers of up to 40."""
    draw = random.Random(11)
    trace = tmp_path_factory.mktemp("truth") / "short.csv"
    rows = (f"2023-11-16 18:00:00.{i:07d},{draw.randint(1, 200)},{draw.randint(1, 40)}\n" for i in range(REQUESTS))
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(rows))
    return trace


@pytest.mark.timeout(60 + 3 * REQUESTS / RATE)
@pytest.mark.parametrize("dialect", fleets.DIALECTS)
def test_every_request_is_accounted_for(dialect, targets, run, short_requests):
    target = targets(dialect)
    lines = target.final_lines()
    faults = target.relay_faults()
    replay = run("replay", "--url", target.url, "--trace", short_requests, "--rate-per-s", RATE, "--probe", "false",
                 "--model", target.model, "--retries", 0, "--leave-share", LEAVE_SHARE, "--leave-within-s", 0.2, "--json", "-",
                 seconds=60 + REQUESTS / RATE * 2)
    result = json.loads(replay.stdout)
    assert result["first_errors"] == [], result
    assert result["completed"] + result["left"] == REQUESTS
    assert result["left"] >= REQUESTS * LEAVE_SHARE / 10
    # Leases of KV that nobody fetches end with them.
    fleets.wait_until(target.is_empty, f"nothing is held: {target.state()}", 5 + 3 * fleets.LEASE_SECONDS)
    assert target.relay_faults() == faults
    # A client may leave before its request has reached the router.
    fleets.wait_until(lambda: target.final_lines() - lines >= REQUESTS - result["left"], "each has its final line")
    assert target.final_lines() - lines <= REQUESTS
