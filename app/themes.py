"""gpudeck's own two themes; Textual's others serve too."""

from textual.theme import Theme

# One hue for acts and focus (a calm teal), one each for the three states.  The states differ in lightness as well as
# in hue, and always stand beside a sign and a word.
DARK = Theme(
    name="gpudeck-dark",
    primary="#4fb3bf",
    secondary="#7aa2c9",
    accent="#e0af68",
    foreground="#d5dae0",
    background="#101418",
    surface="#161b21",
    panel="#1e252d",
    success="#8fc97a",
    warning="#e5b567",
    error="#ee7a76",
    dark=True,
    variables={"border": "#3a4652", "footer-key-foreground": "#4fb3bf", "block-cursor-text-style": "none"},
)
LIGHT = Theme(
    name="gpudeck-light",
    primary="#0f6f7c",
    secondary="#35608f",
    accent="#8a5a00",
    foreground="#1f2933",
    background="#f6f7f8",
    surface="#ffffff",
    panel="#e9edf0",
    success="#2f7d2a",
    warning="#8f5c00",
    error="#b3261e",
    dark=False,
    variables={"border": "#b8c2cc", "footer-key-foreground": "#0f6f7c", "block-cursor-text-style": "none"},
)
