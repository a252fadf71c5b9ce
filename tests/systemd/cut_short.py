"""Acts on the real systemd, each to be cut short at every file call below /etc."""

from contextlib import suppress
from pathlib import Path

from gpudeck.services.engine.systemd.errors import NoUnitError
from gpudeck.services.engine.systemd.manager import SystemdRunner
from gpudeck.services.engine.types import Scope
from gpudeck.services.plan.secrets import API_KEY, Secrets
from tests.rigs.small_engines import engine
from tests.systemd.test_lifecycle import SLEEPS, UNITS

_KEYS = Path("/etc/gpudeck")
_OLD, _NEW = "old-key-" * 4, "new-key-" * 4


class Install:
    """An engine's unit and its key take the place of earlier ones."""

    in_programs = False
    under = Path("/etc")

    def before(self, folder: Path) -> None:
        self._install(folder, "/models/old", _OLD)

    def act(self, folder: Path) -> None:
        self._install(folder, "/models/new", _NEW)

    def _install(self, folder: Path, model: str, key: str) -> None:
        spec = engine(folder, "cut", SLEEPS, model=model)
        SystemdRunner(Scope.SYSTEM).install(spec, enable=True, secrets=Secrets(((API_KEY, key),)))

    def check(self, folder: Path, *, whole: bool) -> None:
        runner = SystemdRunner(Scope.SYSTEM)
        state = runner.state("cut")
        assert state is not None
        assert state.managed
        assert state.spec is not None
        assert state.spec.model in ("/models/new", *(() if whole else ("/models/old",)))
        assert runner.api_key("cut") in (_NEW, *(() if whole else (_OLD,)))
        for path in _KEYS.iterdir():
            assert path.stat().st_mode & 0o077 == 0, path

    def again(self, folder: Path) -> None:
        self.act(folder)
        self.check(folder, whole=True)
        assert sorted(path.name for path in _KEYS.iterdir()) == ["vllm-cut.env"]
        assert [path.name for path in UNITS.iterdir() if "cut" in path.name] == ["vllm-cut.service"]
        SystemdRunner(Scope.SYSTEM).remove("cut")


class Removal(Install):
    def act(self, folder: Path) -> None:
        SystemdRunner(Scope.SYSTEM).remove("cut")

    def check(self, folder: Path, *, whole: bool) -> None:
        there = (UNITS / "vllm-cut.service").exists()
        assert not (whole and there)
        assert there or not list(_KEYS.iterdir()), "a key whose engine is gone"

    def again(self, folder: Path) -> None:
        with suppress(NoUnitError):
            self.act(folder)
        assert not [path for path in UNITS.rglob("*") if "cut" in path.name]
        assert not list(_KEYS.iterdir())
