"""titled.py [WORD...] TITLE...: a program that behaves as `vllm serve` does towards the process table.

It starts a process below itself for each TITLE, named as vLLM names its workers (setproctitle writes the title over
command line and environment; here both are given anew), and tells `TITLE PID` for each on standard output.
"""

import os
import signal
import sys

HOLD = "import signal; print('up', flush=True); signal.pause()"


def main(titles: list[str]) -> None:
    children = []
    for title in titles:
        ready, told = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(told, 1)
            os.execve(sys.executable, [title, "-c", HOLD], {})
        os.read(ready, 3)
        children.append(pid)
        print(title, pid, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        signal.pause()
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main([word for word in sys.argv[1:] if word.startswith("VLLM::")])
