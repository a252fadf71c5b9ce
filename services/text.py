"""Foreign text made safe to show: log lines, names, answers are data and are never interpreted."""

import re

# C0 and C1 controls, DEL, and the characters that reorder or hide text (bidirectional overrides, zero-width joiners
# are left: scripts need them).  Tab is handled apart.
_UNSAFE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    """Return `text` with every control character written out, so that a terminal shows it and obeys none of it.

    Tabs become four blanks.  ESC becomes the two characters `^[`, the other controls likewise in caret notation, what
    has none as `<U+202E>`.  Lone surrogates (bytes that were no UTF-8) become U+FFFD.
    """
    text = text.replace("\t", "    ")
    if _UNSAFE.search(text):
        text = _UNSAFE.sub(_written_out, text)
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _written_out(match: "re.Match[str]") -> str:
    code = ord(match.group())
    if code < 0x20:
        return f"^{chr(code + 0x40)}"
    if code == 0x7F:
        return "^?"
    return f"<U+{code:04X}>"
