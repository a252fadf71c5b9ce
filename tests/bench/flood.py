"""flood.py journal|file RATE [FILE]: log lines of vLLM's, at a steady rate, until it is ended.

As journalctl's JSON on standard output, where it stands in for journalctl, or appended to FILE.
"""

import json
import os
import sys
import time

_LOT_S = 0.01
_TEXTS = (
    '(APIServer pid=71) INFO:     127.0.0.1:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "(EngineCore_DP0 pid=72) INFO 12-01 01:17:56 [loggers.py:127] Engine 000: Avg prompt throughput: 512.3 tokens/s, "
    "Avg generation throughput: 1024.9 tokens/s, Running: 32 reqs, Waiting: 4 reqs, GPU KV cache usage: 51.2%",
    "(Worker_TP0 pid=73) WARNING 12-01 01:17:56 [scheduler.py:12] Sequence group 0-4711 is preempted by recomputation",
    "(Worker_TP1 pid=74) DEBUG 12-01 01:17:56 [cache.py:88] Evicted block 17 \x1b[32mof 4096\x1b[0m",
)


def main(kind: str, rate: int, file: str = "") -> None:
    out = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if file else sys.stdout.fileno()
    lot = max(1, int(rate * _LOT_S))
    shapes = [_entry(text) if kind == "journal" else f"{text.replace('%', '%%')} line %d\n" for text in _TEXTS]
    number, begun = 0, time.monotonic()
    while True:
        lines = (shapes[each % len(shapes)] % each for each in range(number, number + lot))
        left = "".join(lines).encode()
        while left:
            left = left[os.write(out, left) :]
        number += lot
        time.sleep(max(0.0, begun + number / rate - time.monotonic()))


def _entry(text: str) -> str:
    """One entry of `journalctl --output=json`, its line numbered."""
    fields = {
        "MESSAGE": list(text.encode()) if "\x1b" in text else text,
        "PRIORITY": "6",
        "_PID": "71",
        "_SYSTEMD_INVOCATION_ID": "a" * 32,
        "__REALTIME_TIMESTAMP": "1764551876000000",
        "__MONOTONIC_TIMESTAMP": "1",
        "_BOOT_ID": "b" * 32,
    }
    shape = json.dumps(fields).replace("%", "%%")
    if "\x1b" not in text:
        shape = shape.replace('", "PRIORITY', ' line %d", "PRIORITY')
        return f'{shape[:-1]}, "__CURSOR": "s=1;i=1;b=1;m=1;t=1;x=1"}}\n'
    return f'{shape[:-1]}, "__CURSOR": "s=1;i=%x"}}\n'


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
