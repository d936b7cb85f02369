"""The page of a study: the curves of its arms, their differences, and the progress of every run."""

from collections.abc import Sequence
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Item, Kind
from lakewright.experiments.viewer.catalogue.run_space import find_space
from lakewright.experiments.viewer.pages.cards import Card, card_of, describe_study
from lakewright.experiments.viewer.pages.compare_page import arm_of, arms_chart, history_of
from lakewright.experiments.viewer.pages.folder_pages import record_of
from lakewright.experiments.viewer.pages.rendering import Crumb, Page, Table, mark_svg

RESULTS = "results.json"
COLUMNS = {"arm": "", "seeds": "seeds", "valid": "valid %", "deviation": "s.d.", "gain": "gain"}
PARTLY = {"forced": "forced %", "optimal": "optimal %", "along": "along %"}  # not in the results of every study
LAST = {"stages": "stages", "tried": "trials", "taken_back": "rolled back"}


def study_page(item: Item, catalogue: Catalogue) -> Page:
    """The arms of a study and its runs, also while it runs. Raises InputError if its files cannot be read."""
    found = record_of(item, RESULTS) if (item.path / RESULTS).exists() else {}
    cards = [
        card_of(run, catalogue)
        for run in catalogue.items()
        if run.kind is Kind.RUN and run.name.startswith(f"{item.name}/")
    ]
    started = [card for card in cards if arm_of(card.item.name) != card.item.name]
    state, place = describe_study(item, finished=bool(found))
    state = "running" if any(card.state == "running" for card in cards) else state
    values = {
        "item": item,
        "state": state,
        "place": place,
        "finished": sum(card.state == "finished" for card in started),
        "planned": _count_planned(item),
        "results": {name: _format_figure(found.get(name)) for name in ("budget", "baseline", "valid", "held_out")},
        "chart": _draw_chart(started),
        "arms": _of_records(_tabulate_arms, found, "arms"),
        "tests": _of_records(_tabulate_tests, found, "tests"),
        "missing": [str(name)[:80] for name in found.get("missing") or []] if found else [],
        "unable": _list_unable(found),
        "cards": sorted(cards, key=lambda card: card.item.name),
        "compared": [card.item.name for card in started],
    }
    return Page(
        item.name, "study.html", values, [Crumb("All", ""), Crumb(item.name, f"study/{item.name}")], state == "running"
    )


def _count_planned(item: Item) -> int | None:
    """The number of planned runs; None if the plan doesn't say."""
    runs = record_of(item, "study.json").get("runs")
    return len(runs) if isinstance(runs, list) else None


def _draw_chart(cards: Sequence[Card]) -> Any:
    """Valid answers over tokens, a curve for each arm; None while there is nothing to draw."""
    histories, spaces = {}, []
    for card in cards:
        folder = RunFolder(card.item.path)
        try:
            histories[card.item.name.rpartition("/")[2]] = history_of(folder.folder)
            spaces.append(find_space(folder, folder.settings()))
        except InputError:  # its card says so
            continue
    return mark_svg(arms_chart(histories, spaces)) if any(histories.values()) else None


def _list_unable(found: dict[str, Any]) -> list[str]:
    """A line for each run that can never finish."""
    reasons = found.get("unable")
    named = reasons.items() if isinstance(reasons, dict) else ()
    return [f"{name!s:.80} cannot finish: {reason!s:.400}" for name, reason in named]


def _of_records(make: Any, found: dict[str, Any], name: str) -> Table | None:
    """A table of a list of records, if there is one and it is of this version."""
    records = found.get(name)
    if not isinstance(records, list) or not records or not all(isinstance(one, dict) for one in records):
        return None
    try:
        table: Table = make(records, found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{RESULTS}: {name} have another form than in this version ({error!r:.80})") from error
    return table


def _tabulate_arms(arms: list[dict[str, Any]], found: dict[str, Any]) -> Table:
    """The arms, the best first, with the columns that the results of their environment have."""
    rows = []
    rates = sorted({name for arm in arms for name in arm.get("rates") or {}})
    columns = COLUMNS | {name: head for name, head in PARTLY.items() if any(arm.get(name) is not None for arm in arms)}
    columns |= {f"rate {name}": f"{name[:40]} %" for name in rates} | LAST
    reached = any(arm.get("to_best") for arm in arms)
    for arm in sorted(arms, key=lambda arm: -float(arm.get("valid") or 0)):
        points = (arm.get("against") or {}).get("points")
        half = (arm.get("against") or {}).get("interval") or 0
        change = f"{points:+.1f} ± {half:.1f}" if isinstance(points, int | float) else ""
        one = arm | ({"deviation": None} if arm.get("seeds") == 1 else {})
        one |= {f"rate {name}": rate for name, rate in (arm.get("rates") or {}).items()}
        sooner = (_format_reached(arm.get("to_best") or {}),) if reached else ()
        rows.append((*(_format_figure(one.get(name)) for name in columns), *sooner, change))
    baseline = str(found.get("baseline") or "no baseline")[:40]
    heads = (*columns.values(), *((f"k tokens to {baseline}'s best",) if reached else ()), f"against {baseline}")
    return Table(heads, rows)


def _format_reached(found: dict[str, Any]) -> str:
    """The tokens until an arm is as good as the baseline ever is, in thousands."""
    tokens = found.get("tokens")
    return f"{tokens / 1000:.1f}" if isinstance(tokens, int | float) else "never" if found else ""


def _tabulate_tests(tests: list[dict[str, Any]], found: dict[str, Any]) -> Table:
    """Differences of arms on equal seeds, with p corrected for their number."""
    rows = []
    for test in tests:
        gain = test["difference"]
        interval = f"{float(gain['low']):+.1f} to {float(gain['high']):+.1f}"
        names = (str(test["arm"])[:60], str(test["other"])[:60])
        rows.append(
            (*names, f"{float(gain['mean']):+.1f}", interval, f"{float(test['corrected']):.2g}", f"{test['seeds']}")
        )
    return Table(("arm", "against", "points", "95 %", "p (Holm)", "seeds"), rows)


def _format_figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else "" if value is None else str(value)[:60]
