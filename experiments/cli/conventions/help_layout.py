"""How help looks: columns without boxes, the same on a terminal and in a pipe."""

from cyclopts.help import DefaultFormatter, PanelSpec


def help_style() -> DefaultFormatter:
    """Titles above aligned columns; names are coloured on a terminal."""
    from rich.box import Box

    blank = Box("    \n" * 8)
    return DefaultFormatter(panel_spec=PanelSpec(box=blank, padding=0, title_align="left"))
