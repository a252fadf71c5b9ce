"""The command `gpudeck`."""

import errno
import io
import os
import sys

from gpudeck.services.errors import OperatorError


def main() -> int:
    """Run the command line and return its exit code; an operator never sees a traceback for what went wrong outside."""
    from gpudeck.app.cli import run

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Where the locale has no character for what is said, a "?" stands for it.
            stream.reconfigure(errors="replace")
    try:
        try:
            return run(sys.argv[1:])
        finally:
            sys.stdout.flush()
    except OperatorError as error:
        from gpudeck.services.text import printable

        for line in (f"gpudeck: {error}", *error.more):
            print(printable(line), file=sys.stderr)  # noqa: T201
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`gpudeck logs x | head`).
        _drop_output()
        return 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _drop_output()
        print("gpudeck: The output could not be written: no space is left there.", file=sys.stderr)  # noqa: T201
        return 1


def _drop_output() -> None:
    """Leave Python nothing to flush at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
