"""The picture of the house, docs/images/rooms.svg, drawn from the rooms and what their docstrings say.

python docs/site/rooms.py
"""

import ast
import textwrap
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "images" / "rooms.svg"

WIDTH, EDGE, BETWEEN, PAD, GAP = 940, 10, 40, 14, 9  # of the picture, around it, between wings, in a wing, of cards
HEAD, NAME, LINE, CHIP = 46, 32, 17, 25  # heights: a wing's head, a room's name, a line of its caption, a file
LETTER, LARGE_LETTER = 7.2, 7.5  # the mean width of the letters of a caption, of a room and of a wing
COLOURS = {  # of each wing: ink and floor
    "experiments": ("#334e68", "#edf2f7"),
    "engineer": ("#6b46a3", "#f4effa"),
    "policy": ("#b54a00", "#fdf1e7"),
    "core_jax": ("#00708f", "#e6f5f9"),
}
STYLE = """
  text { font-family: "DejaVu Sans", Verdana, "Segoe UI", sans-serif; font-size: 13px; fill: #52606d }
  .wing { font-size: 22px; font-weight: 700 }
  .said { font-size: 14.5px }
  .room { font-family: "DejaVu Sans Mono", Menlo, monospace; font-size: 14.5px; font-weight: 700; fill: #1f2933 }
  .file { font-family: "DejaVu Sans Mono", Menlo, monospace; font-size: 13px }
  .card { fill: #ffffff; stroke: #cbd2d9 }
  .way { stroke: #7b8794; stroke-width: 2; fill: none; marker-end: url(#head) }
"""


@dataclass
class Room:
    """A room or a wing: its name, what it knows, the rooms inside, and its own files."""

    name: str
    caption: str
    rooms: list["Room"]
    files: list[str]


@dataclass
class Drawing:
    """Some SVG and its height."""

    parts: list[str]
    height: float


def main() -> None:
    """Writes the picture."""
    PICTURE.write_text(picture())


def picture() -> str:
    """The whole SVG: experiments above engineer and policy, and those above core_jax, as imports go."""
    experiments, engineer, policy, core = (read_room(ROOT / wing) for wing in COLOURS)
    whole = WIDTH - 2 * EDGE
    half = (whole - BETWEEN) / 2
    left, middle, right = EDGE + half / 2, WIDTH / 2, WIDTH - EDGE - half / 2

    top = draw_wing(experiments, EDGE, EDGE, whole, columns=4)
    second = EDGE + top.height + BETWEEN
    tall = max(draw_wing(wing, 0, 0, half, columns=2).height for wing in (engineer, policy))
    halves = [
        draw_wing(wing, x, second, half, columns=2, least=tall)
        for wing, x in ((engineer, EDGE), (policy, EDGE + half + BETWEEN))
    ]
    third = second + tall + BETWEEN
    bottom = draw_wing(core, EDGE, third, whole, columns=4)
    ways = [
        *(arrow(x, second - BETWEEN, second) for x in (left, right)),
        *(arrow(x, third - BETWEEN, third) for x in (left, right)),
        arrow(middle, second - BETWEEN, third),
    ]
    parts = [*ways, *top.parts, *(part for drawing in halves for part in drawing.parts), *bottom.parts]
    height = third + bottom.height + EDGE
    title = "The four wings of Lakewright and their rooms; arrows say who imports whom"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{title}">
<title>{title}</title>
<style>{STYLE}</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 10 5 0 10z" fill="#7b8794"/></marker></defs>
<rect width="{WIDTH}" height="{height:g}" rx="12" fill="#ffffff"/>
{chr(10).join(parts)}
</svg>
"""


def read_room(folder: Path) -> Room:
    """A folder with the rooms in it, from its docstring and files."""
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    rooms = [read_room(door.parent) for door in sorted(folder.glob("*/__init__.py"))]
    files = sorted(file.stem for file in folder.glob("*.py") if not file.stem.startswith("__"))
    return Room(folder.name, said.split("\n")[0].rstrip(".").replace("`", ""), rooms, files)


def draw_wing(wing: Room, x: float, y: float, width: float, columns: int, least: float = 0) -> Drawing:
    """A wing: its head, the files at its top, its rooms in a grid, then each room with rooms in a row of its own."""
    ink, floor = COLOURS[wing.name]
    said = textwrap.wrap(wing.caption, int((width - 2 * PAD) / LARGE_LETTER))
    inner, below = width - 2 * PAD, y + HEAD + 18 * len(said)
    files = draw_files(wing.files, x + PAD, below, inner, ink)
    rooms = draw_grid([room for room in wing.rooms if not room.rooms], x + PAD, below + files.height, inner, columns)
    parts, below = [*files.parts, *rooms.parts], below + files.height + rooms.height
    for room in (room for room in wing.rooms if room.rooms):
        row = draw_suite(room, x + PAD, below, inner, ink)
        parts += row.parts
        below += row.height
    height = max(least, below + PAD - GAP - y)
    head = [
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="10" fill="{floor}" stroke="{ink}"/>',
        f'<text x="{x + PAD:g}" y="{y + 29:g}" class="wing" style="fill:{ink}">{wing.name}</text>',
        *(
            f'<text x="{x + PAD:g}" y="{y + 51 + 18 * place:g}" class="said">{escape(line)}</text>'
            for place, line in enumerate(said)
        ),
    ]
    return Drawing(head + parts, height)


def draw_grid(rooms: list[Room], x: float, y: float, width: float, columns: int) -> Drawing:
    """Rooms as cards in rows of at most `columns`, as even as can be; the cards of a row are equally high."""
    parts, below = [], y
    rows = -(-len(rooms) // columns)
    for place in range(rows):
        row = rooms[len(rooms) * place // rows : len(rooms) * (place + 1) // rows]
        across = (width - GAP * (len(row) - 1)) / len(row)
        tall = max(card_height(room, across) for room in row)
        for number, room in enumerate(row):
            parts += draw_card(room, x + number * (across + GAP), below, across, tall)
        below += tall + GAP
    return Drawing(parts, below - y)


def draw_suite(room: Room, x: float, y: float, width: float, ink: str) -> Drawing:
    """A room that has rooms: its own card, and theirs beside it in a frame."""
    whole = Room(room.name, room.caption, [], [])
    within = [Room(f"{room.name}.{part.name}", part.caption, [], []) for part in room.rooms]
    inside = draw_grid([whole, *within], x + GAP, y + GAP, width - 2 * GAP, 3)
    height = inside.height + GAP
    frame = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" fill="{ink}" fill-opacity="0.16"/>'
    return Drawing([frame, *inside.parts], height + GAP)


def draw_files(files: list[str], x: float, y: float, width: float, ink: str) -> Drawing:
    """Files as chips, in as many rows as they take."""
    parts, at, below = [], x, y
    for file in files:
        across = 7.9 * len(file) + 18
        if at + across > x + width:
            at, below = x, below + CHIP + 6
        parts.append(
            f'<rect x="{at:g}" y="{below:g}" width="{across:g}" height="{CHIP}" rx="12" fill="#ffffff" stroke="{ink}" '
            f'stroke-opacity="0.45"/><text x="{at + 9:g}" y="{below + 17:g}" class="file">{file}</text>'
        )
        at += across + 6
    return Drawing(parts, below + CHIP + GAP - y if files else 0)


def lines_of(room: Room, width: float) -> list[str]:
    """The caption of a card of that width."""
    return textwrap.wrap(room.caption, int((width - 20) / LETTER))


def card_height(room: Room, width: float) -> float:
    """The height that a room's name and caption take."""
    return NAME + LINE * len(lines_of(room, width)) + 4


def draw_card(room: Room, x: float, y: float, width: float, height: float) -> list[str]:
    """A room: its name and what it knows."""
    return [
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" class="card"/>',
        f'<text x="{x + 10:g}" y="{y + 22:g}" class="room">{room.name}</text>',
        *(
            f'<text x="{x + 10:g}" y="{y + NAME + 10 + LINE * place:g}">{escape(line)}</text>'
            for place, line in enumerate(lines_of(room, width))
        ),
    ]


def arrow(x: float, top: float, bottom: float) -> str:
    """A way down from one wing to another."""
    return f'<line x1="{x:g}" y1="{top:g}" x2="{x:g}" y2="{bottom - 2:g}" class="way"/>'


if __name__ == "__main__":
    main()
