"""report.html: what a run was, what came of it, and what its engineer changed, in one file that needs nothing else."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from core_jax.results import Outcomes
from core_jax.support import write_atomically
from engineer.delta import FIELDS, ConfigDelta
from experiments.loop.records import (
    Chapter,
    Decision,
    Example,
    RunFolder,
    Trial,
    chapters,
    forced_rate,
    met_in_training,
)
from experiments.loop.settings import RunSettings
from experiments.view import run_plots as plots
from experiments.view.board_pictures import caption, frames
from experiments.view.html import escaped, figure, folded, grid, page, table
from experiments.view.run_table import describe

FORCED = "A board forces a wait if on it every plan of the least sum of costs has an agent wait before it arrives."
GUARD = (
    "After each stage the engineer proposes changes of the ratios. The guard accepts them, or projects them onto what "
    "is legal and within reach, or refuses them; the next stage, if there is one, is drawn from the outcome."
)
TRIAL = "Tried on a few boards of each config before training; the one with the most signal is trained on."
LEGEND = (
    "A frame shows the board after t moves. A0 and A1 are agents, G0 and G1 their goals, dark ovals are holes; rows "
    "and columns count from 0. A line shows where an agent came from, W that it waited, a dashed frame who failed."
)


def write_report(folder: RunFolder) -> None:
    """Writes report.html from what the run has finished so far."""
    settings, history = folder.settings(), chapters(folder)
    title = f"Lakewright run {folder.folder.resolve().name}"
    sections = [f"<h1>{escaped(title)}</h1>", *_headline(settings, history)]
    sections += _results(history, met_in_training(folder))
    for part in (_training, _configs, _proposals, _boards):
        sections += part(history)
    write_atomically(folder.report, page(title, sections).encode())


def _headline(settings: RunSettings, history: Sequence[Chapter]) -> Iterator[str]:
    finished = sum(chapter.config is not None for chapter in history)
    sizes = ", ".join(f"{size}x{size}" for size in settings.env.sizes)
    run = f"Teacher {settings.teacher}, seed {settings.seed}, {finished} of {settings.stages} stages finished."
    yield f'<p class="lead">{escaped(_result(history))}</p>'
    agents = " or ".join(map(str, settings.teams or [settings.env.agents]))
    yield f"<p>{escaped(run)} {agents} agents on {escaped(sizes)} boards.</p>"
    yield folded("All settings", msgspec.json.format(msgspec.json.encode(settings), indent=2).decode())


def _result(history: Sequence[Chapter]) -> str:
    if not history:
        return "Nothing is finished yet: the warm-up is still to come."
    first, last = history[0], history[-1]
    if first is last:
        valid, forced = _percent(first.pooled.rate(first.pooled.valid)), _percent(forced_rate(first.pooled))
        return f"After the {first.name} {valid}% of plans are valid, and {forced}% where the board forces a wait."
    valid = _change(first.pooled.rate(first.pooled.valid), last.pooled.rate(last.pooled.valid))
    forced = _change(forced_rate(first.pooled), forced_rate(last.pooled))
    return f"From {first.name} to {last.name}, valid plans go {valid}, and where the board forces a wait, {forced}."


def _results(history: Sequence[Chapter], met: Mapping[int, int]) -> Iterator[str]:
    if not history:
        return
    held_out = history[-1].pooled
    error = 50 / max(held_out.boards, 1) ** 0.5
    yield "<h2>Results on held-out boards</h2>"
    yield f"<p>{held_out.boards} boards, the same after each stage; {held_out.wait_boards} force a wait. {FORCED}</p>"
    header = ("", "valid %", "optimal makespan %", "optimal sum of costs %", "valid, wait forced %", "minutes")
    yield table(header, ([part.name, *_shares(part.pooled), f"{part.seconds / 60:.1f}"] for part in history))
    yield f'<p class="note">One standard error of a share of all boards is at most {error:.1f} points.</p>'
    yield grid(map(figure, (plots.rates_plot(history), plots.sizes_plot(history), plots.failures_plot(history))), 340)
    sizes = sorted(held_out_sizes := history[-1].validation.sizes)
    boards = [f"{size}x{size} ({held_out_sizes[size].boards})" for size in sizes]
    yield "<h3>Valid plans by map size, % (boards)</h3>"
    seen = ", ".join(f"{size}x{size} {met[size]}" for size in sizes if met.get(size)) or "none"
    yield f'<p class="note">Held-out boards that also occur among the boards of the stages: {seen}.</p>'
    yield table(("", *boards), ((chapter.name, *_by_size(chapter, sizes)) for chapter in history))


def _training(history: Sequence[Chapter]) -> Iterator[str]:
    if not any(chapter.config and chapter.log for chapter in history):
        return
    yield "<h2>Training</h2>"
    yield "<p>A group is the plans sampled for one board; GRPO learns nothing from one whose rewards are all equal.</p>"
    yield grid(map(figure, (plots.reward_plot(history), plots.shares_plot(history))), 340)


def _configs(history: Sequence[Chapter]) -> Iterator[str]:
    if not any(chapter.config for chapter in history):
        return
    legend, *panels = plots.config_plots(history)
    yield "<h2>What the boards were drawn from</h2>"
    yield (
        "<p>Data ratio: the share of a stage's boards of this size. Hole ratio: the share of holes among the cells "
        "that are neither start nor goal. Wait ratio: the share of boards that force a wait.</p>"
    )
    yield figure(legend)
    yield grid(map(figure, panels), 160)


def _proposals(history: Sequence[Chapter]) -> Iterator[str]:
    decided = [(chapter, chapter.decision) for chapter in history if chapter.decision]
    if decided:
        yield f"<h2>What the engineer proposed</h2><p>{GUARD}</p>"
    for chapter, decision in decided:
        yield f"<h3>After {escaped(chapter.name)}</h3>"
        yield from _proposal(chapter, decision)


def _proposal(chapter: Chapter, decision: Decision) -> Iterator[str]:
    proposal, verdict = decision.proposal, decision.verdict
    status = f'<span class="status">{escaped(verdict.status)}</span>'
    yield f"<p>The guard: {status} Teacher: {escaped(decision.teacher)}.</p>"
    if proposal.error:
        yield f"<p>{escaped(proposal.error)}</p>"
    if proposal.delta and proposal.delta.edits:
        yield table(("size", "data", "hole", "wait", "reason"), _edits(proposal.delta), prose=4)
    elif proposal.delta:
        yield "<p>No edits: the boards stay as they are.</p>"
    if verdict.reasons:
        yield f"<ul>{''.join(f'<li>{escaped(reason)}</li>' for reason in verdict.reasons)}</ul>"
    config = verdict.config
    if trial := chapter.trial:
        config = trial.candidates[trial.chosen].config
        yield f"<p>{TRIAL}</p>"
        yield table(("", "p (1 - p)", "informative groups %", "valid plans %"), _tried(trial))
    if chapter.config:
        lines = f"trained on  {describe(chapter.config)}\ndecided     {describe(config)}"
        yield folded("Configs (size: data hole wait)", lines)
    yield folded("Prompt", proposal.prompt or "(none: this teacher is not prompted)")
    yield folded("Answer", proposal.answer or "(empty)")


def _tried(trial: Trial) -> Iterator[tuple[str, ...]]:
    for place, found in enumerate(trial.candidates):
        name = ("proposed" if place else "current") + (", chosen" if place == trial.chosen else "")
        signal = found.signal
        yield name, f"{signal.variance:.3f}", _percent(signal.informative), _percent(signal.valid)


def _edits(delta: ConfigDelta) -> Iterator[tuple[str, ...]]:
    for size, edit in sorted(delta.edits.items()):
        changes = (getattr(edit, field) for field in FIELDS)
        yield f"{size}x{size}", *(f"{change:+.3g}" if change else "0" for change in changes), edit.reason


def _boards(history: Sequence[Chapter]) -> Iterator[str]:
    examples = history[-1].validation.examples if history else []
    if not examples:
        return
    yield f"<h2>Plans after {escaped(history[-1].name)}</h2><p>{LEGEND}</p>"
    for title, valid in (("Valid plans on boards that force a wait", True), ("Failures", False)):
        shown = [example for example in examples if (example.failure == "none") == valid]
        if shown:
            yield f"<h3>{title}</h3>" + "".join(map(_strip, shown))


def _strip(example: Example) -> str:
    return figure(grid(frames(example), max(140, 32 * example.row.size), "fill"), caption(example), "board")


def _shares(outcomes: Outcomes) -> list[str]:
    counts = (outcomes.valid, outcomes.optimal_makespan, outcomes.optimal_sum_of_costs)
    return [_percent(share) for share in (*map(outcomes.rate, counts), forced_rate(outcomes))]


def _by_size(chapter: Chapter, sizes: Sequence[int]) -> Iterator[str]:
    for size in sizes:
        part = chapter.validation.sizes.get(size)
        yield _percent(part.rate(part.valid)) if part else ""


def _change(before: float, after: float) -> str:
    return f"from {_percent(before)}% to {_percent(after)}%"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
