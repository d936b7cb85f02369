"""The estimate of a run's memory and disk, as a short table."""

from collections.abc import Iterator

from lakewright.experiments.loop.host.estimate import GB, Estimate

MB = 10**6
KIND = {True: "", False: " (words, digits and signs counted: its tokenizer is not here)"}


def estimate_table(found: Estimate) -> str:
    """The estimate as a short table."""
    return "\n".join([*_write_head(found), "", *_list_phases(found), "", *_list_host(found)])


def _write_head(found: Estimate) -> Iterator[str]:
    whole = found.trained == found.parameters
    trained = "all trained" if whole else f"{found.trained:,}{' of an adapter' * found.adapter} trained"
    shared = f" with {found.sharing}" if found.sharing != "none" else ""
    place = "the CPU" if not found.on_gpu else "GPUs" if found.processes > 1 else "a GPU"
    processes = f"{found.processes} process{'es' if found.processes > 1 else ''} on {place}"
    yield f"{found.model}: {found.parameters:,} weights in {found.number}, {trained}; {processes}{shared}"
    lengths = found.lengths
    yield f"longest prompt {lengths.prompt:,} tokens{KIND[lengths.exact]}, longest answer {lengths.answer:,}"


def _list_phases(found: Estimate) -> list[str]:
    from tabulate import tabulate

    unit, name = (GB, "GB") if found.peak.total >= GB else (MB, "MB")
    items = dict.fromkeys(item for phase in found.phases for item, size in phase.items.items() if size)
    rows = [[item, *(_format_number(phase.items.get(item, 0) / unit) for phase in found.phases)] for item in items]
    rows.append(["together", *(_format_number(phase.total / unit) for phase in found.phases)])
    header = [f"{name} in a process", *(phase.name for phase in found.phases)]
    right = ["left", *["right"] * len(found.phases)]
    return tabulate(rows, header, tablefmt="simple", disable_numparse=True, colalign=right).splitlines()


def _list_host(found: Estimate) -> Iterator[str]:
    if not found.known:
        yield "The table does not cover the activations of a network on the board."
    if found.processes > 1:
        yield f"Memory of the host while every process loads the model: {found.loading / GB:,.1f} GB."
    yield f"Disk: a checkpoint {_format_size(found.checkpoint)}, the run {_format_size(found.disk)}."


def _format_size(size: int) -> str:
    return f"{size / GB:,.1f} GB" if size >= GB else f"{size / MB:,.1f} MB"


def _format_number(value: float) -> str:
    return f"{value:,.2f}" if value else ""
