"""Text from anywhere inside SVG or HTML."""

import html


def escaped(text: object) -> str:
    """Text as markup that shows it; what cannot be shown becomes U+FFFD."""
    shown = (letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in str(text))
    return html.escape("".join(shown), quote=True)
