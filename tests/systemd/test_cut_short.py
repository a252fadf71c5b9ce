"""An install and a removal under the real systemd, killed at each of their file calls or met by a full disk there."""

import errno
from pathlib import Path

import pytest

from tests.rigs.filefaults.sweep import sweep
from tests.rigs.small_engines import inside_systemd
from tests.systemd import cut_short

pytestmark = inside_systemd


@pytest.mark.parametrize("act", ["Install", "Removal"])
@pytest.mark.parametrize("error", [0, errno.ENOSPC], ids=["killed", "full"])
def test_the_old_or_the_new_stands(tmp_path: Path, act: str, error: int) -> None:
    tmp_path.chmod(0o755)
    assert sweep(f"{cut_short.__name__}:{act}", tmp_path, error) >= 4
