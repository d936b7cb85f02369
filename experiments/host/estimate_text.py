"""An estimate as text: what is trained, one line per item with a column per phase, and what the host needs besides."""

from collections.abc import Iterator

from lakewright.experiments.host.estimate import GB, Estimate

MB = 10**6
KIND = {True: "", False: " (words and signs counted: its tokenizer is not here)"}


def estimate_table(found: Estimate) -> str:
    """The estimate as a short table."""
    return "\n".join([*_head(found), "", *_phases(found), "", *_host(found)])


def _head(found: Estimate) -> Iterator[str]:
    whole = found.trained == found.parameters
    trained = "all trained" if whole else f"{found.trained:,}{' of an adapter' * found.adapter} trained"
    shared = f" with {found.sharing}" if found.sharing != "none" else ""
    processes = f"{found.processes} process{'es' if found.processes > 1 else ''}"
    yield f"{found.model}: {found.parameters:,} weights in {found.number}, {trained}; {processes}{shared}"
    lengths = found.lengths
    yield f"longest prompt {lengths.prompt:,} tokens{KIND[lengths.exact]}, longest answer {lengths.answer:,}"


def _phases(found: Estimate) -> list[str]:
    from tabulate import tabulate

    unit, name = (GB, "GB") if found.peak.total >= GB else (MB, "MB")
    items = dict.fromkeys(item for phase in found.phases for item, size in phase.items.items() if size)
    rows = [[item, *(_number(phase.items.get(item, 0) / unit) for phase in found.phases)] for item in items]
    rows.append(["together", *(_number(phase.total / unit) for phase in found.phases)])
    header = [f"{name} in a process", *(phase.name for phase in found.phases)]
    right = ["left", *["right"] * len(found.phases)]
    return tabulate(rows, header, tablefmt="simple", disable_numparse=True, colalign=right).splitlines()


def _host(found: Estimate) -> Iterator[str]:
    if not found.known:
        yield "Not in the table: the activations of a network on the board, for which there is no arithmetic here."
    if found.processes > 1:
        yield f"Memory of the host while every process loads the model: {found.loading / GB:,.1f} GB."
    yield f"Disk: a checkpoint {_size(found.checkpoint)}, the run {_size(found.disk)}."


def _size(size: int) -> str:
    return f"{size / GB:,.1f} GB" if size >= GB else f"{size / MB:,.1f} MB"


def _number(value: float) -> str:
    return f"{value:,.2f}" if value else ""
