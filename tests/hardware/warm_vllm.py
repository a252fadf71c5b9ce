"""`python warm_vllm.py GO serve …`: vLLM's own command, its imports done ahead; it begins when the file GO is there.

Half a minute of each start is imports, which need no GPU: so the next engine imports while the one before is measured.
"""

import sys
import time
from pathlib import Path

import vllm.entrypoints.cli.main as vllm_command
import vllm.entrypoints.openai.api_server
import vllm.v1.engine.core
import vllm.v1.worker.gpu_worker  # noqa: F401


def main() -> None:
    go = Path(sys.argv[1])
    while not go.exists():
        time.sleep(0.05)
    sys.argv = ["vllm", *sys.argv[2:]]
    vllm_command.main()


if __name__ == "__main__":
    main()
