"""Every act that writes, killed at each of its file calls or met by a full disk there: the old or the new stands."""

import errno
from pathlib import Path

import pytest

from tests.rigs.filefaults.sweep import sweep
from tests.services import cut_short

WRITES = (
    "UnitFile", "KeyFile", "NewFile", "BoxRecord", "BenchResult", "ReadySpec", "FirstInstall", "Reinstall", "Removal",
)  # fmt: skip


@pytest.mark.parametrize("act", WRITES)
@pytest.mark.parametrize(
    "error", [0, errno.ENOSPC, errno.EIO, errno.EROFS], ids=["killed", "full", "broken", "read-only"]
)
def test_the_old_or_the_new_stands(tmp_path: Path, act: str, error: int) -> None:
    assert sweep(f"{cut_short.__name__}:{act}", tmp_path, error) >= 5


@pytest.mark.parametrize("act", ["Start", "SupervisorStart"])
def test_a_start_that_is_cut_short_can_be_made_again(tmp_path: Path, act: str) -> None:
    assert sweep(f"{cut_short.__name__}:{act}", tmp_path) >= 5
