"""The rooms' directions: who may import whom, how long a file may be, and what opening the panel may load.

Held against the source itself, so that a new file is covered the moment it exists.
"""

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("app", "services", "widgets")
LONGEST_FILE = 400

# What reaches outside the process: a widget, and all that it imports, does without. `time` and `datetime` are clocks.
OUTSIDE = {
    *("asyncio", "ctypes", "datetime", "fcntl", "gguf", "gi", "glob", "http", "httpx", "io", "multiprocessing", "os"),
    *("pathlib", "platformdirs", "psutil", "pty", "pydbus", "pynvml", "select", "selectors", "shutil", "signal"),
    *("socket", "ssl", "subprocess", "tempfile", "termios", "threading", "time", "urllib"),
}
# What Textual needs only for some widgets, or what only one service needs: none of it before the first frame.
HEAVY = {
    *("gguf", "gi", "httpx", "linkify_it", "markdown_it", "numpy", "psutil", "pydbus", "pygments", "pynvml"),
    *("rich.markdown", "rich.syntax", "textual.widgets._markdown"),
}


def sources(*rooms: str) -> Iterator[Path]:
    for room in rooms:
        yield from sorted((ROOT / room).rglob("*.py"))


def imports(source: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of each import in `source`, wherever it stands; `from a import b` gives a and a.b."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield node.lineno, module
                yield from ((node.lineno, f"{module}.{name.name}") for name in names)
            case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__")):
                match node.args:
                    case [ast.Constant(value=str(module)), *_]:
                        yield node.lineno, module


def within(module: str, packages: set[str]) -> bool:
    """True when `module` is one of `packages` or lies below one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def offences(paths: Iterator[Path], forbidden: set[str]) -> list[str]:
    """Each import of something forbidden, as `file:line imports module`; only the shortest name of each line's."""
    found = {
        (path, line): module
        for path in paths
        for line, module in reversed(list(imports(path.read_text(encoding="utf-8"))))
        if within(module, forbidden)
    }
    return [f"{path.relative_to(ROOT)}:{line} imports {module}" for (path, line), module in sorted(found.items())]


def file_of(module: str) -> Path | None:
    """The file of gpudeck.… in the checkout, or None when the name is no module (a class, a function)."""
    stem = ROOT.joinpath(*module.split(".")[1:])
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


def test_imports_of_every_form_are_seen() -> None:
    source = (
        "import a.b, c as d\ndef f():\n    from e.f import g\n    importlib.import_module('h.i')\n    __import__('j')\n"
    )
    assert list(imports(source)) == [(1, "a.b"), (1, "c"), (3, "e.f"), (3, "e.f.g"), (4, "h.i"), (5, "j")]


def test_services_look_up_to_nobody() -> None:
    assert offences(sources("services"), {"textual", "rich", "gpudeck.widgets", "gpudeck.app"}) == []


def test_widgets_do_not_know_the_app() -> None:
    assert offences(sources("widgets"), {"gpudeck.app"}) == []


def test_widgets_do_no_io() -> None:
    assert offences(sources("widgets"), OUTSIDE) == []
    opened = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sources("widgets")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"open", "exec", "eval"}
    ]
    assert opened == []


def test_widgets_reach_only_pure_services() -> None:
    """Data types and pure functions: no module that a widget gets at, however indirectly, reaches outside."""
    via: dict[str, str] = {}  # a module of services, and who imports it
    waiting = [
        (module, str(path.relative_to(ROOT)))
        for path in sources("widgets")
        for _, module in imports(path.read_text(encoding="utf-8"))
    ]
    impure = []
    while waiting:
        module, importer = waiting.pop()
        if module in via or not within(module, {"gpudeck.services"}):
            continue
        path = file_of(module)
        if path is None:
            continue
        via[module] = importer
        impure += [f"{importer} imports {module}, and {offence}" for offence in offences(iter([path]), OUTSIDE)]
        waiting += [(further, module) for _, further in imports(path.read_text(encoding="utf-8"))]
    assert impure == []
    assert via, "widgets import nothing of services: this test looks in the wrong place"


def test_rooms_are_imported_by_their_full_names() -> None:
    assert offences(sources(*ROOMS, "tests", "screenshots"), set(ROOMS)) == []


def test_files_hold_one_idea_each() -> None:
    lengths = {
        path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources(*ROOMS, "tests", "screenshots")
    }
    assert {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > LONGEST_FILE} == {}


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh Python has loaded after `statement`."""
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_opening_the_panel_loads_nothing_heavy() -> None:
    if importlib.util.find_spec("gpudeck.app.panel") is None:
        pytest.skip("there is no panel yet")
    loaded = loaded_by("import gpudeck.app.panel")
    assert "textual.app" in loaded
    assert sorted(module for module in loaded if module in HEAVY) == []


def test_commands_do_not_load_the_screen() -> None:
    """`gpudeck box` in a script pays for no user interface."""
    commands = [f"gpudeck.app.commands.{path.stem}" for path in (ROOT / "app" / "commands").glob("[a-z]*.py")]
    loaded = loaded_by(f"import {', '.join(['gpudeck.app.__main__', 'gpudeck.app.cli', *commands])}")
    assert sorted(module for module in loaded if within(module, {"textual"})) == []
