"""Real runs of vLLM 0.24.0 on one H200, and the table that compares the memory model with them.

`python -m tests.services.memory.h200` prints the table.  `memory` and `tokens` in the data are what vLLM itself counted
and printed; sizes in bytes.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpudeck.services.box.types import Box, ComputeCapability, Gpu
from gpudeck.services.memory.plan import MemoryDetail, memory_detail
from gpudeck.services.models.read import read_model
from gpudeck.services.models.types import ModelFacts
from gpudeck.services.plan.findings import Judgement
from gpudeck.services.plan.types import EngineOptions, EngineSpec, Placement
from gpudeck.services.rules.judge import judge
from gpudeck.services.rules.surroundings import Surroundings

VERSION = "0.24.0"
DATA = Path(__file__).parents[2] / "data"
H200 = Gpu(0, "NVIDIA H200", 150_754_820_096, ComputeCapability(9, 0))
BOX = Box((H200,), driver="580.95.05", cuda="13.0")


@dataclass(frozen=True, slots=True)
class Case:
    id: str
    model: ModelFacts
    spec: EngineSpec
    used: dict[int, int]
    ready: bool
    memory: dict[str, int | None]
    tokens: int | None

    def detail(self) -> MemoryDetail:
        return memory_detail(BOX, self.model, self.spec, self.used, VERSION)

    def judgement(self) -> Judgement:
        return judge(BOX, self.model, self.spec, used=self.used, around=Surroundings(vllm_version=VERSION))


def cases() -> list[Case]:
    """The runs that the model was fitted to, and those of `tests.hardware.pairs`, which were predicted before."""
    files = (DATA / "h200_cases.jsonl", DATA / "h200_pairs.jsonl")
    return [_case(json.loads(line)) for file in files for line in file.read_text().splitlines()]


def _case(data: dict[str, Any]) -> Case:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--max-model-len", type=lambda text: -1 if text == "auto" else int(text))
    for option in ("--max-num-seqs", "--max-num-batched-tokens", "--tensor-parallel-size", "--pipeline-parallel-size"):
        parser.add_argument(option, type=int)
    parser.add_argument("--gpu-memory-utilization", type=float)
    for option in ("--kv-cache-dtype", "--quantization", "--load-format"):
        parser.add_argument(option)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--enforce-eager", action="store_true")
    known, extra = parser.parse_known_args(data["options"])
    tensor = known.tensor_parallel_size or 1
    stages = known.pipeline_parallel_size or 1
    del known.tensor_parallel_size, known.pipeline_parallel_size
    placement = Placement(tuple(tuple(range(s * tensor, (s + 1) * tensor)) for s in range(stages)))
    options = EngineOptions(**vars(known), extra=tuple(extra))
    model = read_model(str(DATA / "models" / data["model"]))
    spec = EngineSpec("case", model.path, placement, options, environment=tuple(data["env"].items()))
    used = {0: data.get("used_before", 0)}
    return Case(data["id"], model, spec, used, data["ready"], data.get("memory", {}), data.get("tokens"))


def main() -> None:
    print(f"{'case':28} {'tokens':>10} {'predicted':>10} {'error':>7}   {'MiB too much:':14} ready  verdict")
    print(f"{'':28} {'':>10} {'':>10} {'':>7}   {'weights peak graphs':22}")
    worst = untold = 0.0
    for case in cases():
        if not case.memory:
            print(f"{case.id:28} {'':>10} {'':>10} {'':>7}   {'':22} {case.ready!s:6} {case.judgement().state.value}")
            continue
        detail = case.detail()
        rank = detail.ranks[0]
        error = 0.0
        if case.tokens:
            error = detail.plan.kv_cache_tokens / case.tokens - 1
            worst = max(worst, abs(error))
            plan = memory_detail(BOX, case.model, case.spec, case.used).plan
            untold = max(untold, abs(plan.kv_cache_tokens / case.tokens - 1))
        deltas = [
            rank.weights - (case.memory["weights"] or 0),
            rank.overhead.activation - (case.memory["activation_peak"] or 0),
            rank.overhead.graphs_inside + rank.overhead.graphs_outside - (case.memory["cudagraph_actual"] or 0),
        ]
        shown = " ".join(f"{delta / 2**20:7.0f}" for delta in deltas)
        verdict = case.judgement().state.value
        print(
            f"{case.id:28} {case.tokens or 0:10d} {detail.plan.kv_cache_tokens:10d} {error:7.2%}   {shown} "
            f"{case.ready!s:6} {verdict}"
        )
    print(f"largest error in tokens: {worst:.2%}; where nobody tells vLLM's version: {untold:.2%}")


if __name__ == "__main__":
    main()
