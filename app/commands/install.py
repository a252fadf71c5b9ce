"""`gpudeck install …`: write the unit, after saying what that does."""

import argparse
import sys

from gpudeck.app.commands import unit
from gpudeck.app.commands.common import runner_for, told_command
from gpudeck.app.commands.confirm import confirmed
from gpudeck.app.commands.keys import secrets_from
from gpudeck.app.commands.reloading import risk_of_reload
from gpudeck.services.engine.types import Runner, Scope
from gpudeck.services.errors import OperatorError
from gpudeck.services.plan.findings import Severity, VerdictState
from gpudeck.services.text import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    unit.arguments(parser)
    parser.add_argument("--enable", action="store_true", help="start it at every boot")
    parser.add_argument(
        "--linger", action="store_true", help="at user scope: let your engines go on after you have logged out"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--force", action="store_true", help="install a plan that is blocked, too")


def run(args: argparse.Namespace) -> int:
    spec, judgement = unit.judged_spec(args)
    for finding in judgement.findings:
        print(f"{finding.severity.value}: {printable(finding.message)} [{finding.rule}]")
    if judgement.state is VerdictState.BLOCKED and not args.force:
        worst = next(finding for finding in judgement.findings if finding.severity is Severity.ERROR)
        way_out = worst.fix or "Change the plan."
        raise OperatorError(
            f"The plan is blocked ({worst.rule}): {printable(worst.message)} {way_out} "
            "--force installs it all the same."
        )
    secrets = secrets_from(args)
    runner = runner_for(args)
    try:
        preview = runner.preview(spec)
        if preview.unchanged and not args.enable and not secrets:
            print(f"{preview.path} is installed already, line for line.")
            _offer_linger(args, runner)
            return 0
        if not preview.managed:
            raise OperatorError(
                f"{preview.path} is there already and was not written by gpudeck: give the engine another --name."
            )
        if args.user_account and runner.scope is not Scope.SYSTEM:
            raise OperatorError("--user-account is for the system's units: leave it out, or run gpudeck as root.")
        if not spec.user and runner.scope is Scope.SYSTEM and not args.demo:
            print("It runs as root: --user-account NAME gives it an account of its own.")
        print(unit.difference(preview) if preview.existing else preview.text)
        enabling = " and has it started at every boot" if args.enable else ""
        keys = f", and {' and '.join(secrets.names)} into {preview.secrets_file} (mode 0600)" if secrets else ""
        if preview.edited:
            print("It was edited by hand since gpudeck wrote it; what the diff takes out is lost.")
        told = f"This writes {preview.path}{enabling}{keys}. {risk_of_reload(args, runner.scope)}".rstrip()
        if not confirmed(told, yes=args.yes):
            return 1
        runner.install(spec, enable=args.enable, secrets=secrets, shown=preview)
        there = runner.state(spec.name)
        verb = "restart" if there is not None and there.runs else "start"
        print(f"Installed.  {verb.capitalize()} it with: {told_command(args, f'{verb} {spec.name}')}")
        _offer_linger(args, runner)
    finally:
        runner.close()
    return 0


def _offer_linger(args: argparse.Namespace, runner: Runner) -> None:
    """Say that engines end at the logout, and let them go on where that is wished."""
    if runner.outlives_login:
        return
    told = "Your engines end when you log out, and do not start at boot"
    if not args.linger and (args.yes or not sys.stdin.isatty()):
        print(f"{told}: install with --linger lets them go on.")
        return
    offer = f"{told}.  Lingering (logind) lets all of your services go on."
    if args.linger or confirmed(offer, yes=False, otherwise="They end with your login."):
        runner.let_outlive_login()
        print("Your engines go on after you have logged out.")
