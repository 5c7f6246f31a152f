"""Ranks behind one port, and numbers for them that two sides understand differently: reports A51 to A54."""

import collections
import json

from raw_clients import CHAT, ask
from raw_workers import ByRank

ROUND_ROBIN = {"policy": {"name": "round_robin"}, "barrier": False}


def metrics_of(*ranks: int, running: int = 0) -> bytes:
    return "".join(f'vllm:num_requests_running{{engine="{rank}"}} {running}\nvllm:num_requests_waiting{{engine="{rank}"}} 0\n'
                   for rank in ranks).encode()


def behind_one_port(node: ByRank, start: int = 0, ranks: int | None = None) -> dict:
    return {"url": node.url, "ranks": ranks or node.ranks, "addressing": "header", "start_rank": start}


def test_a51_ranks_are_counted_within_their_port(worker, route):
    """Law: of the second node's ranks 4 to 7 the header names 0 to 3, as its server counts, and none is refused."""
    first, second = worker(ByRank, 4), worker(ByRank, 4)
    workers = [behind_one_port(first), behind_one_port(second, start=4)]
    router = route(fleet=ROUND_ROBIN, group={"workers": workers})
    assert [ask(router.listen, "/v1/chat/completions", CHAT).status for _ in range(16)] == [200] * 16
    assert collections.Counter(first.asked) == collections.Counter(second.asked) == {rank: 2 for rank in range(4)}
    engine_ranks = [one["engine_rank"] for one in router.ledger()["workers"]]
    assert sorted(engine_ranks) == list(range(8))


def test_a52_a_rank_that_is_refused_harms_no_other(worker, route):
    """Law: a rank that a server does not have is held at its first refusal, which is nobody's second try; its other
    ranks go on."""
    node = worker(ByRank, 2)
    router = route(fleet=ROUND_ROBIN, group={"workers": [behind_one_port(node, ranks=4)]},
                   health={"interval_ms": 0, "hold_after": 2})
    answers = [ask(router.listen, "/v1/chat/completions", CHAT) for _ in range(16)]
    assert sorted(answer.status for answer in answers) == [200] * 14 + [502] * 2
    assert all(answer.error["code"] == "rank_rejected" for answer in answers if answer.status == 502)
    assert len(node.asked) == 16  # none was sent again
    assert router.metric("balanceroute_worker_ready") == 2


def test_a53_a_rank_that_the_engine_does_not_have_is_found(worker, run, tmp_path):
    """Law: the self-check compares the ranks that are configured with those that each engine says it runs."""
    path = tmp_path / "check.yaml"

    def check(node: ByRank, **settings):
        path.write_text(json.dumps({"fleets": [{"groups": [
            {"name": "g", "slots": 4, "workers": [{**behind_one_port(node), **settings}]}]}]}))
        return run("check", "--config", path)

    right = check(worker(ByRank, 2, metrics_of(4, 5)), start_rank=4)
    assert right.returncode == 0, right.stdout
    one_only = check(worker(ByRank, 2, metrics_of(0)))  # an engine that ignores the number runs all on one rank
    assert one_only.returncode == 1
    assert "has no rank 1; it has 0 to 0" in one_only.stdout


def test_a54_the_configured_rank_is_never_replaced(worker, route, run, tmp_path):
    """Law: where engine and configuration number ranks differently the configuration is obeyed and the check tells."""
    node = worker(ByRank, 2, metrics_of(4, 5))
    workers = [behind_one_port(node, start=0)]
    router = route(fleet=ROUND_ROBIN, group={"workers": workers}, health={"interval_ms": 20})
    assert [ask(router.listen, "/v1/chat/completions", CHAT).status for _ in range(4)] == [200] * 4
    assert sorted(node.asked) == [0, 0, 1, 1]
    assert sorted(one["engine_rank"] for one in router.ledger()["workers"]) == [0, 1]
    checked = run("check", "--config", router.process.command[-1])
    assert checked.returncode == 1
    assert "has no rank 0; it has 4 to 5" in checked.stdout
    assert "start_rank: 4" in checked.stdout
