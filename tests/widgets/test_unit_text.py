"""A unit's text on screen, and what a write would change."""

from hypothesis import given
from hypothesis import strategies as st

from gpudeck.widgets.unit_text import changed_lines, diff_content, unit_content

_UNIT = "# by hand\n[Service]\nExecStart=/usr/bin/vllm serve \\\n  [bold]x[/bold]\nEnvironment=A=b\n"


def test_the_text_is_shown_to_the_letter() -> None:
    assert unit_content(_UNIT).plain == _UNIT.rstrip("\n")


def test_sections_names_and_comments_differ_in_style() -> None:
    content = unit_content(_UNIT)
    styles = {content.plain[span.start : span.end]: str(span.style) for span in content.spans}
    assert styles["[Service]"] != styles["ExecStart"] != styles["# by hand"]
    assert "bold]x[/bold" not in " ".join(styles)


def test_control_characters_of_a_foreign_unit_are_written_out() -> None:
    assert unit_content("Description=a\x1b[2Jb").plain == "Description=a^[[2Jb"


@given(st.lists(st.sampled_from(["a", "b", "c=1", "--- x", "+++ y", "@@", ""])), st.lists(st.sampled_from(["a", "b"])))
def test_the_diff_counts_what_it_shows(before: list[str], after: list[str]) -> None:
    old, new = "\n".join(before), "\n".join(after)
    added, removed = changed_lines(old, new)
    shown = diff_content(old, new).plain.splitlines()
    assert sum(line.startswith("+ ") for line in shown) == added
    assert sum(line.startswith("- ") for line in shown) == removed
