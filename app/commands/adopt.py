"""`gpudeck adopt UNIT`: what a hand-written unit runs, what is wrong with it, and the corrected unit as a diff."""

import argparse
from pathlib import Path

from gpudeck.app.commands.adopting import box_of
from gpudeck.app.commands.common import print_json, runner_for
from gpudeck.app.programs import engine_program
from gpudeck.services.adoption.corrected import corrected_text, difference, keys_words
from gpudeck.services.adoption.files import read_text, unit_files
from gpudeck.services.adoption.on_box import folders_of
from gpudeck.services.adoption.on_runner import judged
from gpudeck.services.adoption.read import read_unit
from gpudeck.services.adoption.report import document
from gpudeck.services.adoption.types import Adopted, Review, UnitFiles
from gpudeck.services.engine.types import Scope
from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("unit", metavar="UNIT", help="a unit of this box, or the path of a .service file")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.epilog = "Nothing is changed: the diff shows what gpudeck would write."


def run(args: argparse.Namespace) -> int:
    files, scope = _files(args)
    adopted = read_unit(files, read_text)
    box = box_of(args) if adopted is not None else None
    adopted = read_unit(files, read_text, box)
    if adopted is None:
        raise OperatorError(f"{printable(files.unit)} runs no vLLM: name a unit whose command is `vllm serve`.")
    review = judged(adopted, box, engine_program(demo=args.demo).version)
    text = corrected_text(review, scope)
    changes = difference(files, text, adopted.spec.name) if text is not None else None
    if args.json:
        print_json(document(review, changes))
        return 0
    print("\n".join([*_head(adopted), "", *_findings(review)]))
    if changes is not None:
        print(f"\nWhat gpudeck would write instead (nothing is changed by this):\n\n{_lines(changes)}")
        if moved := keys_words(review, scope):
            print(f"\n{printable(moved)}")
    return 0


def _files(args: argparse.Namespace) -> tuple[UnitFiles, Scope]:
    """The unit that is named: a file here, or one of systemd's folders."""
    name = str(args.unit)
    if "/" in name or Path(name).is_file():
        path = Path(name)
        found = unit_files([path.parent], path.name)
        scope = Scope.SYSTEM
    else:
        unit = name if name.endswith(".service") else f"{name}.service"
        scope = _scope(args)
        places = folders_of(scope)
        found = unit_files(places, unit) or unit_files(places, f"vllm-{unit}")
    if found is None:
        raise OperatorError(f"There is no unit {printable(name)} that can be read: give its name or its path.")
    return found, scope


def _scope(args: argparse.Namespace) -> Scope:
    runner = runner_for(args)
    runner.close()
    return Scope.USER if runner.scope is Scope.USER else Scope.SYSTEM


def _head(adopted: Adopted) -> list[str]:
    options = adopted.spec.options
    cards = "all cards" if adopted.cards is None else f"cards {', '.join(map(str, adopted.cards)) or 'none'}"
    copies = f" DP{adopted.replicas}" if adopted.replicas > 1 else ""
    served = f" as {options.served_model_name}" if options.served_model_name else ""
    rows = [
        f"{printable(adopted.unit)} runs vLLM",
        f"  model   {printable(adopted.spec.model or 'not told')}{printable(served)}",
        f"  shape   TP{adopted.tensor_parallel_size} PP{adopted.pipeline_parallel_size}{copies} on {cards}",
        f"  port    {options.port} on {printable(options.host)}",
    ]
    if adopted.container is not None:
        rows.append(f"  image   {printable(adopted.container.image)}")
    return rows


def _findings(review: Review) -> list[str]:
    if not review.findings:
        return ["Nothing speaks against it."]
    rows = []
    for each in review.findings:
        rows.append(f"  {each.severity.value:8} {each.rule}: {printable(each.message)}")
        if each.fix:
            rows.append(f"           {printable(each.fix)}")
    return rows


def _lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.split("\n"))
