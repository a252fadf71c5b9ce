"""gpudeck topo: the link matrix of the box."""

import argparse
import sys

from gpudeck.app.commands.common import box_source, print_json
from gpudeck.services.box.report import topo_document
from gpudeck.services.box.reporttext import topo_text
from gpudeck.services.box.sampler import read_once


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document: indices and matrix")


def run(args: argparse.Namespace) -> int:
    box = read_once(box_source(args)).box
    if args.json:
        print_json(topo_document(box))
    else:
        sys.stdout.write(topo_text(box))
    return 0
