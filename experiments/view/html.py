"""HTML by hand: escaping, tables, and the page around the sections of a report."""

import html
import itertools
from collections.abc import Iterable

STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #55606c; --page: #ffffff; --card: #f5f7f9; --line: #d5dce3;
  --link: #0b5c94; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #a9b3bd; --page: #14181d; --card: #1d2329;
  --line: #39424c; --link: #7cc0ee; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #333; --page: #fff; --card: #fff; --line: #999; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.25rem 1rem 3rem; max-width: 72rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem; border-bottom: 1px solid var(--line); break-after: avoid; }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .25rem; break-after: avoid; }
p { margin: .4rem 0; max-width: 46rem; }
.lead { font-size: 1.15rem; }
.note, figcaption { color: var(--soft); font-size: .9rem; }
.grid { display: grid; gap: .75rem; }
.fit { grid-template-columns: repeat(auto-fit, minmax(min(var(--least), 100%), 1fr)); }
.fill { grid-template-columns: repeat(auto-fill, minmax(min(var(--least), 46%), 1fr)); }
figure { margin: .5rem 0; padding: .6rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  break-inside: avoid; }
figure > svg { display: block; width: 100%; height: auto; max-width: 28rem; margin: 0 auto; }
figure.board { background: #fff; color: #1d2733; }
figure.board svg { display: block; width: 100%; height: auto; }
figure.board figcaption { color: #1d2733; margin-bottom: .5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; margin: .5rem 0; overflow-wrap: normal; }
th, td { padding: .25rem .55rem; text-align: right; border-bottom: 1px solid var(--line); vertical-align: top;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
th { font-weight: 600; white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
td.text { white-space: normal; min-width: 14rem; overflow-wrap: anywhere; }
details { margin: .4rem 0; }
summary { cursor: pointer; color: var(--link); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; padding: .6rem; font-size: .82rem; max-height: 24rem; overflow-y: auto; }
.status { border: 1.5px solid; border-radius: 999px; padding: 0 .6rem; font-size: .9rem; font-weight: 600; }
@media print { body { font-size: 11pt; max-width: none; } pre { max-height: none; } }
"""


def page(title: str, sections: Iterable[str]) -> str:
    """A whole HTML page, with its style inline and nothing else to load. `sections` are HTML, `title` is text."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escaped(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(section for section in sections if section)
        + "\n</body>\n</html>\n"
    )


def escaped(text: str) -> str:
    """Text from anywhere as HTML or SVG that shows it; what cannot be shown becomes U+FFFD."""
    shown = (letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in text)
    return html.escape("".join(shown), quote=True)


def table(header: Iterable[str], rows: Iterable[Iterable[str]], prose: int | None = None) -> str:
    """A table of text; columns are for figures, but for the first, and for that of number `prose`."""

    def line(tag: str, cells: Iterable[str]) -> str:
        kinds = (' class="text"' if column == prose else "" for column in itertools.count())
        return "".join(f"<{tag}{kind}>{escaped(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=False))

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{line("th", header)}</tr></thead><tbody>{body}</tbody></table></div>'


def grid(cells: Iterable[str], least: int, room: str = "fit") -> str:
    """HTML blocks side by side, each at least `least` pixels wide as far as the page has room.

    A row that is not full is stretched ("fit"), or the rest of it stays empty ("fill").
    """
    return f'<div class="grid {room}" style="--least:{least}px">{"".join(cells)}</div>'


def figure(picture: str, caption: str = "", kind: str = "") -> str:
    """A picture, which is HTML or SVG, with a caption, which is text."""
    words = f"<figcaption>{escaped(caption)}</figcaption>" if caption else ""
    return f'<figure class="{kind}">{words}{picture}</figure>'


def folded(summary: str, text: str) -> str:
    """Long text, shown on demand."""
    return f"<details><summary>{escaped(summary)}</summary><pre>{escaped(text)}</pre></details>"
