"""Files that stand whole or not at all, whenever the process that writes them dies.  Standard library only."""

import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path

_SUFFIX = ".new"
_STEM = 40  # characters of the name that a temporary one begins with: the whole must not be too long


def write_whole(path: Path, content: bytes, *, mode: int = 0o600, new: bool = False) -> None:
    """Put a file of this content in place of `path`, or leave what stands there.  Raises OSError.

    The content is on the disk before it gets its name, and is at no time readable by anyone whom `mode` does not let.
    With `new` a file that is there already is kept, and FileExistsError raised.  What an earlier writer of the same
    file left behind when it was killed is removed.
    """
    _sweep(path)
    # mkstemp's files are new ones and their owner's alone: nobody prepares a link there.
    descriptor, temporary = tempfile.mkstemp(
        prefix=f".{path.name[:_STEM]}.{os.getpid()}.", suffix=_SUFFIX, dir=path.parent
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        if new:
            _name(temporary, path)
        else:
            os.replace(temporary, path)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk.  Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def umask_mode() -> int:
    """The mode of a file that is no secret, as the operator's umask has it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask


def _name(temporary: str, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # no hard links on this file system
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.replace(temporary, path)  # noqa: PTH105
    else:
        os.unlink(temporary)  # noqa: PTH108


def _sweep(path: Path) -> None:
    """Remove what writers of this file left that are no more; it may hold a key."""
    ours = re.compile(rf"\.{re.escape(path.name[:_STEM])}\.(\d+)\.[^.]+{re.escape(_SUFFIX)}")
    with suppress(OSError):
        for name in os.listdir(path.parent):  # noqa: PTH208 (it is asked at every write: no Path an entry)
            if (found := ours.fullmatch(name)) and not _runs(int(found[1])):
                with suppress(OSError):
                    path.with_name(name).unlink()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it runs and is another's
        return True
    return True
