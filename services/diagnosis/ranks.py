"""Which rank a process of vLLM has, by the name it writes before its lines."""

import re

from gpudeck.services.plan.types import Placement

# "Worker_TP1", "Worker_DP0_PP1_TP3_EP3"; a part stands where that kind of parallelism is used.  "VllmWorker rank=2" of
# 0.8 names the rank itself.
_WORKER = re.compile(r"(?:Worker|WorkerProc)(?P<parts>(?:_[A-Z]+\d{1,4})*)$", re.ASCII)
_PART = re.compile(r"_(DP|PP|TP)(\d+)", re.ASCII)
_RANK = re.compile(r"VllmWorker rank=(\d{1,4})$", re.ASCII)


def rank_of_writer(writer: str, placement: Placement) -> int | None:
    """The place among the placement's cards; None for processes that belong to no card."""
    if found := _RANK.match(writer):
        return int(found[1])
    worker = _WORKER.match(writer)
    if worker is None:
        return None
    place = {kind: int(number) for kind, number in _PART.findall(worker["parts"])}
    stage = place.get("DP", 0) * placement.pipeline_parallel_size + place.get("PP", 0)
    return stage * placement.tensor_parallel_size + place.get("TP", 0)
