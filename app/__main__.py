"""The command `gpudeck`."""

import os
import sys

from gpudeck.services.errors import OperatorError


def main() -> int:
    """Run the command line and return its exit code; an operator never sees a traceback for what went wrong outside."""
    from gpudeck.app.cli import run

    try:
        return run(sys.argv[1:])
    except OperatorError as error:
        from gpudeck.services.text import printable

        print(f"gpudeck: {printable(str(error))}", file=sys.stderr)  # noqa: T201
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`gpudeck logs x | head`): nothing is left to say, nor to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
