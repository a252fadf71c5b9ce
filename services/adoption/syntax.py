"""Unit files as systemd reads them: systemd.syntax(7), systemd.unit(5), systemd.exec(5)."""

import re
from collections.abc import Iterable, Iterator, Mapping

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
_LISTS = ("ExecStart", "ExecStartPre", "Environment", "EnvironmentFile", "PassEnvironment")  # an empty one clears
_BRACED = re.compile(r"\$\{([A-Za-z_]\w*)\}", re.ASCII)
_ALONE = re.compile(r"\$([A-Za-z_]\w*)\Z", re.ASCII)


def service_section(texts: Iterable[str]) -> dict[str, list[str]]:
    """The [Service] directives of a unit and its drop-ins together; of a plain one the last value is last."""
    found: dict[str, list[str]] = {}
    for text in texts:
        section = ""
        for line in _joined(text):
            if line.startswith("["):
                section = line.strip()
            elif section == "[Service]" and "=" in line:
                key, value = (part.strip() for part in line.split("=", 1))
                if not value and key in _LISTS:
                    found.pop(key, None)
                else:
                    found.setdefault(key, []).append(value)
    return found


def _joined(text: str) -> Iterator[str]:
    """Lines with their continuations; comments, also those between continuations, are left out."""
    held = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        stripped = line.strip()
        if stripped.startswith(("#", ";")) or (not stripped and not held):
            continue
        if stripped.endswith("\\"):
            held += stripped[:-1] + " "
            continue
        yield held + stripped
        held = ""
    if held:
        yield held


def words(value: str) -> list[str]:
    """Split as systemd does: blanks part words, quotes keep them together, backslash escapes as in C."""
    found: list[str] = []
    word, quote, begun, place = "", "", False, 0
    while place < len(value):
        character = value[place]
        place += 1
        if character == "\\" and place < len(value):
            following = value[place]
            place += 1
            if following == "x" and re.match(r"[0-9a-fA-F]{2}", value[place:]):
                word, place = word + chr(int(value[place : place + 2], 16)), place + 2
            else:
                word += _ESCAPES.get(following, following)
            begun = True
        elif quote:
            if character == quote:
                quote = ""
            else:
                word += character
        elif character in "\"'" and not begun:
            quote, begun = character, True
        elif character.isspace():
            if begun:
                found.append(word)
            word, begun = "", False
        else:
            word, begun = word + character, True
    return [*found, word] if begun else found


def specified(text: str, unit: str) -> str:
    """The specifiers that name the unit: %i %I %j %n %N %p %P and %%; others stay."""
    name = unit.removesuffix(".service")
    prefix, _, instance = name.partition("@")
    unescaped = re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), instance.replace("-", "/"))
    values = {
        "i": instance, "I": unescaped, "n": unit, "N": name, "p": prefix, "P": prefix.replace("-", "/"),
        "j": prefix.rsplit("-", 1)[-1], "%": "%",
    }  # fmt: skip
    return re.sub(r"%([a-zA-Z%])", lambda found: values.get(found[1], found[0]), text)


def expanded(word: str, variables: Mapping[str, str]) -> list[str]:
    """A word of a command line with its variables: $NAME alone becomes as many words as it holds."""
    if alone := _ALONE.match(word):
        return variables.get(alone[1], "").split()
    return [_BRACED.sub(lambda found: variables.get(found[1], ""), word).replace("$$", "$")]


def command_words(value: str, unit: str, variables: Mapping[str, str]) -> list[str]:
    """The words that an ExecStart= runs, the program first."""
    found = [specified(word, unit) for word in words(value)]
    if not found:
        return []
    prefixes = found[0][: len(found[0]) - len(found[0].lstrip("@-:+!|"))]
    found[0] = found[0].lstrip("@-:+!|")
    if "@" in prefixes and len(found) > 1:
        del found[1]  # what the process is to be called
    if ":" in prefixes:
        return found
    return [part for word in found for part in expanded(word, variables)]


def environment_file(text: str) -> dict[str, str]:
    """The assignments of an EnvironmentFile=."""
    found: dict[str, str] = {}
    for line in _joined(text):
        name, separator, value = line.partition("=")
        name = name.strip().removeprefix("export ").strip()
        if separator and re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            found[name] = _unquoted(value.strip())
    return found


def _unquoted(value: str) -> str:
    """The value of a line in an environment file: systemd.exec(5), EnvironmentFile=."""
    quote = value[0] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else ""
    if quote == "'":
        return value[1:-1]
    return re.sub(r'\\(["\\`$])', r"\1", value[1:-1]) if quote else re.sub(r"\\(.)", r"\1", value)


def assignments(values: Iterable[str], unit: str) -> dict[str, str]:
    """The variables of Environment= directives."""
    pairs = [specified(word, unit).partition("=") for value in values for word in words(value)]
    return {name: value for name, separator, value in pairs if separator}
