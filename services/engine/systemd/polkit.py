"""The rule by which root lets a group start and stop the system's engines, and nothing else."""

import json
import re

from gpudeck.services.errors import OperatorError
from gpudeck.services.text import printable

GROUP = "gpudeck"
PLACE = "/etc/polkit-1/rules.d/50-gpudeck.rules"
_GROUP = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")  # useradd(8), with what directories of users hold besides

# The action's details are systemd's own: org.freedesktop.systemd1(5), "Security"; polkit(8) has the rules' language.
# Writing units (manage-unit-files) and reloading (reload-daemon) are actions of their own, which no line here grants.
_RULE = """\
// gpudeck: the group {group} may start, stop and restart vllm-*.service of the system, and clear their failures.
// Installing, removing, enabling and every other unit stay root's.  As root:
//
//     gpudeck polkit{option} > {place}
//     groupadd --system {group}
//     usermod -aG {group},systemd-journal NAME    # who may then act, and read the engines' logs
//
// polkit heeds a new rule at once, a user a new group from the next login on.
polkit.addRule(function (action, subject) {{
    var verbs = ["start", "stop", "restart", "reset-failed"];
    if (action.id == "org.freedesktop.systemd1.manage-units" &&
        /^vllm-[a-z0-9][a-z0-9_.-]*\\.service$/.test(action.lookup("unit")) &&
        verbs.indexOf(action.lookup("verb")) >= 0 &&
        subject.isInGroup({quoted})) {{
        return polkit.Result.YES;
    }}
    return polkit.Result.NOT_HANDLED;
}});
"""


def rule_text(group: str = GROUP) -> str:
    """The rule's file.  Raises OperatorError for what can not be a group's name."""
    if not _GROUP.fullmatch(group):
        raise OperatorError(f"{printable(repr(group[:64]))} can not be a group's name: give one like {GROUP}.")
    option = "" if group == GROUP else f" --group {group}"
    return _RULE.format(group=group, option=option, place=PLACE, quoted=json.dumps(group))
