"""The whole road on a real GPU box with a real vLLM: the panel at a real terminal, and failures as they happen.

    python -m tests.hardware.road --models DIR --out FOLDER [--only PART …]

Run by hand on a machine with one NVIDIA card, its driver and a vLLM that gpudeck finds; DIR holds the model directories
(weights are dummies, so config.json is enough).  Below FOLDER come what each part saw (road.jsonl), the screens
(NAME.txt, and NAME.json for `screenshots.kept`), the engines' logs and a recording of the box.  Exit code 1: a part did
not see what it should.
"""

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.hardware.road_failures import FAILURES
from tests.hardware.road_serving import SERVING
from tests.hardware.roadside import Roadside

PARTS: dict[str, Callable[[Roadside], None]] = {**SERVING, **FAILURES}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--until", type=float, default=3600.0, help="begin no part after this many seconds")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS), metavar="PART")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    os.environ["GPUDECK_MODELS"] = str(args.models)
    os.environ["XDG_STATE_HOME"] = str(args.out / "state")
    end = time.monotonic() + args.until
    failed = []
    for name in args.only:
        if time.monotonic() > end:
            failed.append(f"{name} (no time left)")
            continue
        side = Roadside(args.models, args.out, name)
        try:
            PARTS[name](side)
        except Exception:  # noqa: BLE001 (the parts behind it are tried all the same, and the code tells)
            side.note(failed=traceback.format_exc())
            failed.append(name)
        finally:
            side.clear()
    print(json.dumps({"failed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
