"""A stage in a few lines for people: what the engineer saw, said and changed, and what trial and guard made of it."""

from collections.abc import Iterator

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.results import pool
from lakewright.engineer.delta import FIELDS, summary
from lakewright.experiments.loop.records import Decision, RunFolder, Trial, Validation, read

MOST = 200  # characters of what the engineer said


def story_of(folder: RunFolder, number: int) -> list[str]:
    """The lines of a finished stage."""
    stage, before = folder.stage(number), folder.standing(number - 1)
    lines = [_saw(read(before.validation, Validation), read(stage.validation, Validation))]
    following = stage.following()
    if stage.taken_back():
        lines.append(f"taken back  {following.reasons[0]}")
    if following.source != "rollback":
        lines += _said(read(stage.proposal, Decision))
        if stage.trial.exists():
            lines.append(f"trial       {read(stage.trial, Trial).summary()}")
    return [*lines, f"changed     {changes(stage.config(), following.config)} ({following.source})"]


def changes(old: EnvConfig, new: EnvConfig) -> str:
    """What differs between two configs, such as `5x5 data +0.05 hole -0.1`."""
    parts = []
    for size, cell in new.sizes.items():
        steps = {field: getattr(cell, field) - getattr(old.sizes[size], field) for field in FIELDS}
        steps_shown = [
            f"{field.removesuffix('_ratio')} {step:+.2g}" for field, step in steps.items() if abs(step) > 1e-6
        ]
        parts += [f"{size}x{size} {' '.join(steps_shown)}"] if steps_shown else []
    return ", ".join(parts) or "no change"


def _saw(before: Validation, after: Validation) -> str:
    old, new = pool(before.sizes.values()), pool(after.sizes.values())
    sizes = ", ".join(f"{size}x{size} {100 * part.rate(part.valid):.0f}" for size, part in sorted(after.sizes.items()))
    rates = 100 * old.rate(old.valid), 100 * new.rate(new.valid)
    return f"saw         {rates[1]:.1f} % of held-out plans valid ({rates[1] - rates[0]:+.1f}): {sizes}"


def _said(decision: Decision) -> Iterator[str]:
    proposal, verdict = decision.proposal, decision.verdict
    text = summary(proposal.delta) if proposal.delta else proposal.error
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    others = f" (and {len(proposal.candidates)} more)" if proposal.candidates else ""
    yield f"said        {printable[:MOST]}{'...' * (len(printable) > MOST)}{others}"
    if verdict.status == "projected":
        yield f"guard       held back {len(verdict.reasons)} of the changes"
    elif verdict.status == "refused":
        yield f"guard       refused: {verdict.reasons[0][:MOST]}"
