"""A log written to a file of the operator's choice."""

from contextlib import suppress
from pathlib import Path

from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable
from gpudeck.services.whole_file import write_whole


def save(path: str, text: str) -> Path:
    """Write the text to a new file, whole or not at all, which only its owner may read: a log may hold prompts.

    Gives back the file's absolute path.  Raises OperatorError where there is such a file already or none can be made.
    """
    if not path.strip():
        raise OperatorError("A file needs a name: type a path.")
    file = Path(path.strip())
    with suppress(RuntimeError):  # there is no such home
        file = file.expanduser()
    file = file.absolute()
    try:
        write_whole(file, text.encode("utf-8", "replace"), new=True)
    except FileExistsError:
        raise OperatorError(f"{printable(str(file))} is there already: give another name.") from None
    except (OSError, ValueError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise OperatorError(f"{printable(str(file))} can not be written ({said}): give another path.") from None
    return file
