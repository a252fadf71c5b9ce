"""Acts that write files, each to be cut short at every file call (tests/rigs/filefaults)."""

import json
import stat
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gpudeck.services.bench import export, store
from gpudeck.services.bench.report import as_csv, as_markdown
from gpudeck.services.box.boxfile import BoxFile, load_box_file, save_box_file
from gpudeck.services.engine import savedlog
from gpudeck.services.engine.embedded import EmbeddedRunner
from gpudeck.services.engine.phases import Phase
from gpudeck.services.engine.starts.kept import StartBook
from gpudeck.services.engine.starts.times import PhaseTimes
from gpudeck.services.engine.systemd import files
from gpudeck.services.engine.types import Scope, UnitState
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.secrets import API_KEY, Secrets
from gpudeck.services.plan.types import EngineSpec, Placement
from tests.services.bench.results import result
from tests.services.box.boxes import pair

_OLD_KEY, _NEW_KEY = "old-key-" * 4, "new-key-" * 4


def _nothing_beside(folder: Path, *names: str) -> None:
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)


class Act:
    in_programs = False
    under: Path | None = None


class UnitFile(Act):
    """A unit takes the place of an earlier one."""

    old, new = "[Service]\nExecStart=/bin/old\n" * 50, "[Service]\nExecStart=/bin/new\n" * 90
    mode = 0o644

    def before(self, folder: Path) -> None:
        files.write(folder / "vllm-a.service", self.old, self.mode)

    def act(self, folder: Path) -> None:
        files.write(folder / "vllm-a.service", self.new, self.mode)

    def check(self, folder: Path, *, whole: bool) -> None:
        for path in folder.iterdir():
            # Whatever is there was never open to more than the file itself is.
            assert stat.S_IMODE(path.stat().st_mode) & ~self.mode == 0, path
        assert (folder / "vllm-a.service").read_text() in ((self.new,) if whole else (self.old, self.new))
        assert not [path for path in folder.glob("*.service") if path.name != "vllm-a.service"]

    def again(self, folder: Path) -> None:
        self.act(folder)
        _nothing_beside(folder, "vllm-a.service")
        assert (folder / "vllm-a.service").read_text() == self.new


class KeyFile(UnitFile):
    """Keys, which nobody else may read at any time."""

    old, new, mode = f"VLLM_API_KEY={_OLD_KEY}\n", f"VLLM_API_KEY={_NEW_KEY}\n", 0o600


class NewFile(Act):
    """A saved log or conversation, which never takes the place of another file."""

    text = "one line of a log\n" * 5000

    def before(self, folder: Path) -> None:
        """There is none yet."""

    def act(self, folder: Path) -> None:
        savedlog.save(str(folder / "saved.log"), self.text)

    def check(self, folder: Path, *, whole: bool) -> None:
        saved = folder / "saved.log"
        assert saved.exists() or not whole
        assert not saved.exists() or saved.read_text() == self.text

    def again(self, folder: Path) -> None:
        saved = folder / "saved.log"
        if saved.exists():
            return
        self.act(folder)
        _nothing_beside(folder, "saved.log")
        assert saved.read_text() == self.text


class BoxRecord(Act):
    """A recorded box over an earlier one."""

    def before(self, folder: Path) -> None:
        save_box_file(folder / "box.json", BoxFile(pair(), ()))

    def act(self, folder: Path) -> None:
        save_box_file(folder / "box.json", BoxFile(replace(pair(), name="new"), ()))

    def check(self, folder: Path, *, whole: bool) -> None:
        name = load_box_file(folder / "box.json").box.name
        assert name == "new" if whole else name in ("new", pair().name)

    def again(self, folder: Path) -> None:
        self.act(folder)
        _nothing_beside(folder, "box.json")
        self.check(folder, whole=True)


class BenchResult(Act):
    """A measured result is kept beside an earlier one, and all are exported."""

    old, new = (
        replace(result("old", (1,)), id="20260101-000000-old"),
        replace(result("new", (2,)), id="20260102-000000-new"),
    )

    def before(self, folder: Path) -> None:
        store.keep(self.old, folder / "bench")
        export.write_all(folder / "bench", folder)

    def act(self, folder: Path) -> None:
        store.keep(self.new, folder / "bench")
        export.write_all(folder / "bench", folder)

    def check(self, folder: Path, *, whole: bool) -> None:
        results, troubles = store.kept(folder / "bench")
        assert troubles == ()
        assert [each.id for each in results] in ([self.old.id, self.new.id], *([] if whole else [[self.old.id]]))
        for kind, written in (("csv", as_csv), ("md", as_markdown)):
            text = (folder / f"{export.NAME}.{kind}").read_text()
            assert text in (written((self.old, self.new)), *([] if whole else [written((self.old,))]))
        told = json.loads((folder / f"{export.NAME}.json").read_text())["results"]
        assert len(told) == 2 if whole else len(told) in (1, 2)

    def again(self, folder: Path) -> None:
        self.act(folder)
        _nothing_beside(folder, "bench", *(f"{export.NAME}.{kind}" for kind in ("csv", "json", "md")))
        _nothing_beside(folder / "bench", f"{self.old.id}.json", f"{self.new.id}.json")


class ReadySpec(Act):
    """The spec that reached ready is noted beside the one before."""

    first = EngineSpec("a", "/models/first", Placement(((0,),)))
    second = EngineSpec("a", "/models/second", Placement(((0,),)))

    def _state(self, spec: EngineSpec, since: float) -> UnitState:
        return UnitState("a", "vllm-a.service", Scope.USER, True, "active", since=since, spec=spec)

    def before(self, folder: Path) -> None:
        StartBook(folder).keep(self._state(self.first, 1000), PhaseTimes(((Phase.LOADING, 3.0),)))

    def act(self, folder: Path) -> None:
        StartBook(folder).keep(self._state(self.second, 2000), PhaseTimes(((Phase.LOADING, 4.0),)))

    def check(self, folder: Path, *, whole: bool) -> None:
        kept = StartBook(folder).of(self._state(self.second, 2000))
        assert kept.ready in ((self.second, self.first), *(() if whole else ((self.first,),)))

    def again(self, folder: Path) -> None:
        self.act(folder)
        self.check(folder, whole=True)
        _nothing_beside(folder, "user-vllm-a.json", "user-vllm-a.lock")


class Embedded(Act):
    """An engine without systemd: its directory below `folder`."""

    def runner(self, folder: Path) -> EmbeddedRunner:
        return EmbeddedRunner(home=folder / "engines")

    def spec(self, folder: Path, model: str) -> EngineSpec:
        program = folder / "engine.sh"
        if not program.exists():
            program.write_text("#!/bin/sh\nexec sleep 1000\n")
            program.chmod(0o755)
        return EngineSpec("a", model, Placement(((0,),)), program=(str(program),))

    def models(self, folder: Path) -> list[str]:
        runner = self.runner(folder)
        states = runner.engines()
        runner.close()
        return [state.spec.model for state in states if state.spec is not None]

    def private(self, folder: Path) -> None:
        """All that may hold a key is its owner's alone."""
        for path in (folder / "engines").rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


class FirstInstall(Embedded):
    def before(self, folder: Path) -> None:
        self.spec(folder, "/models/new")

    def act(self, folder: Path) -> None:
        self.runner(folder).install(self.spec(folder, "/models/new"), secrets=Secrets(((API_KEY, _NEW_KEY),)))

    def check(self, folder: Path, *, whole: bool) -> None:
        self.private(folder)
        assert self.models(folder) in (["/models/new"], *([] if whole else [[]]))

    def again(self, folder: Path) -> None:
        self.act(folder)
        self.check(folder, whole=True)
        _nothing_beside(folder / "engines" / "vllm-a.service", "command.json", "spec.json", "secrets.env", "lock")


class Reinstall(FirstInstall):
    def before(self, folder: Path) -> None:
        self.runner(folder).install(self.spec(folder, "/models/old"), secrets=Secrets(((API_KEY, _OLD_KEY),)))

    def check(self, folder: Path, *, whole: bool) -> None:
        self.private(folder)
        assert self.models(folder) in (["/models/new"], *([] if whole else [["/models/old"]]))
        runner = self.runner(folder)
        assert runner.api_key("a") in (_NEW_KEY, *(() if whole else (_OLD_KEY,)))


class Removal(Embedded):
    def before(self, folder: Path) -> None:
        self.runner(folder).install(self.spec(folder, "/models/old"), secrets=Secrets(((API_KEY, _OLD_KEY),)))

    def act(self, folder: Path) -> None:
        self.runner(folder).remove("a")

    def check(self, folder: Path, *, whole: bool) -> None:
        assert self.models(folder) in ([], *([] if whole else [["/models/old"]]))

    def again(self, folder: Path) -> None:
        """What was half removed is no obstacle to an engine of that name, which does not inherit the old key."""
        runner = self.runner(folder)
        if self.models(folder):
            runner.remove("a")
        runner.install(self.spec(folder, "/models/new"))
        assert self.models(folder) == ["/models/new"]
        assert runner.api_key("a") is None


class Start(Embedded):
    """The runner is killed while it starts an engine; that one was started before."""

    def before(self, folder: Path) -> None:
        runner = self.runner(folder)
        runner.install(self.spec(folder, "/models/old"))
        runner.start("a")
        runner.stop("a")

    def act(self, folder: Path) -> None:
        runner = self.runner(folder)
        runner.start("a")

    def check(self, folder: Path, *, whole: bool) -> None:
        state = self.runner(folder).state("a")
        assert state is not None
        assert state.active == "active" if whole else state.active in ("active", "inactive", "failed")

    def again(self, folder: Path) -> None:
        runner = self.runner(folder)
        runner.start("a")
        state = runner.state("a")
        assert state is not None
        assert state.main_pid
        runner.stop("a")
        assert not Path(f"/proc/{state.main_pid}").exists()


class SupervisorStart(Start):
    """The supervisor itself is killed, as by the kernel for want of memory."""

    in_programs = True

    def act(self, folder: Path) -> None:
        runner = self.runner(folder)
        with suppress(OperatorError):
            runner.start("a")
        runner.stop("a")

    def check(self, folder: Path, *, whole: bool) -> None:
        assert self.models(folder) == ["/models/old"]
        left = [path.parent.name for path in Path("/proc").glob("[0-9]*/environ") if _names(path, folder)]
        assert not left, "processes that nobody knows of"


def _names(path: Path, folder: Path) -> bool:
    try:
        return f"GPUDECK_FILE_FAULTS={folder}:".encode() in path.read_bytes()
    except OSError:
        return False
