"""The form of the lake's records on disk, which have names of their own: sizes, boards, agents, forced waits.

Runs of the lake wrote these files before the engineer knew other environments, and programs of users read them. So a
record of the lake is written in this form, and read from it. Both directions work by shape on plain JSON values.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lakewright.core_jax.config import hole_ratio_of, holes_of
from lakewright.core_jax.results import Outcomes
from lakewright.engineer.tally import Tally
from lakewright.experiments.environments.lake import WAIT, outcomes_of, problem_of, read_row, tally_of

COLUMNS = ("data_ratio", "hole_ratio", "wait_ratio")
NAMES = {"design": "config", "by_trait": "forced"}  # of fields, in general and for the lake
Tree = Any


def to_lake(tree: Tree) -> Tree:
    """Plain values of a record in the lake's form."""
    if isinstance(tree, list | tuple):
        return [to_lake(part) for part in tree]
    if not isinstance(tree, dict):
        return tree
    for fits, write in _WRITERS:
        if fits(tree):
            return write(tree)
    return {_rename_fields(name, tree): to_lake(_cell_out(name, value)) for name, value in tree.items()}


def from_lake(tree: Tree) -> Tree:
    """Plain values of the lake's form as a record's."""
    if isinstance(tree, list):
        return [from_lake(part) for part in tree]
    if not isinstance(tree, dict):
        return tree
    for fits, read in _READERS:
        if fits(tree):
            return read(tree)
    names = {new: old for old, new in NAMES.items()}
    names |= {"sizes": "strata"} if "signal" in tree else {"strata": "cells"} if "candidates" in tree else {}
    return {names.get(name, name): from_lake(_cell_in(name, value)) for name, value in tree.items()}


def _rename_fields(name: str, tree: Mapping[str, Any]) -> str:
    """The lake's name of a field of a record."""
    if name == "strata" and "signal" in tree:
        return "sizes"
    if name == "cells" and "candidates" in tree:
        return "strata"
    return NAMES.get(name, name)


def _cell_out(name: str, value: Tree) -> Tree:
    """A cell [size, [hole ratio, wait], agents] as [size, hole ratio, wait]."""
    return [value[0], *value[1]] if name == "cell" else value


def _cell_in(name: str, value: Tree) -> Tree:
    return [value[0], value[1:]] if name == "cell" and len(value) == 3 and not isinstance(value[1], list) else value


def _has_field(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda tree: all(name in tree for name in names)


def _design_out(tree: Tree) -> Tree:
    return {"sizes": tree["strata"], "agents": tree["given"]["agents"]}


def _design_in(tree: Tree) -> Tree:
    return {"strata": tree["sizes"], "given": {"agents": tree.get("agents", 2)}}


def _edit_out(tree: Tree) -> Tree:
    return {**{name: tree["changes"].get(name, 0.0) for name in COLUMNS}, "reason": tree["reason"]}


def _edit_in(tree: Tree) -> Tree:
    return {"changes": {name: float(tree.get(name, 0.0)) for name in COLUMNS}, "reason": tree["reason"]}


def _groups_out(tree: Tree) -> Tree:
    size, (hole_ratio, forced) = tree["cell"][:2]
    return {"size": size, "hole_ratio": hole_ratio, "forced": bool(forced), "groups": tree["groups"]}


def _groups_in(tree: Tree) -> Tree:
    return {"cell": [tree["size"], [tree["hole_ratio"], tree["forced"]]], "groups": tree["groups"]}


def _trial_out(tree: Tree) -> Tree:
    size, (hole_ratio, wait), (agents,) = tree["cell"]
    stratum = {"size": size, "agents": agents, "holes": holes_of(size, agents, hole_ratio), "wait": bool(wait)}
    return {"stratum": stratum, "plans": tree["answers"], "valid": tree["valid"]}


def _trial_in(tree: Tree) -> Tree:
    size, agents, holes, wait = (tree["stratum"][name] for name in ("size", "agents", "holes", "wait"))
    cell = [size, [hole_ratio_of(size, agents, holes), wait], [agents]]
    return {"cell": cell, "answers": tree["plans"], "valid": tree["valid"]}


def _tally_out(tree: Tree) -> Tree:
    return msgspec.to_builtins(outcomes_of(msgspec.convert(tree, Tally)))


def _tally_in(tree: Tree) -> Tree:
    return msgspec.to_builtins(tally_of(msgspec.convert(tree, Outcomes)))


def _by_trait_out(tree: Tree) -> Tree:
    return {size: _tally_out(parts[WAIT]) for size, parts in tree.items()}


def _statistics_out(tree: Tree) -> Tree:
    return {"boards": tree["problems"], **tree["knobs"], **tree["measures"], "acceptance": tree["acceptance"]}


def _statistics_in(tree: Tree) -> Tree:
    return {
        "problems": tree["boards"],
        "knobs": {name: tree[name] for name in COLUMNS[1:]},
        "measures": {name: tree[name] for name in ("makespan", "sum_of_costs")},
        "acceptance": tree["acceptance"],
    }


def _case_out(tree: Tree) -> Tree:
    seen = tree["data"]
    ends = {name: seen[name] for name in ("grid", "starts", "goals", "plan")}
    return {"size": tree["stratum"], **ends, "failure": tree["failure"], "agent": seen["agent"], "step": tree["place"]}


def _case_in(tree: Tree) -> Tree:
    data = {name: tree[name] for name in ("grid", "starts", "goals", "plan", "agent")}
    return {"stratum": tree["size"], "text": "", "failure": tree["failure"], "place": tree["step"], "data": data}


def _evidence_out(tree: Tree) -> Tree:
    forced = {size: _tally_out(parts[WAIT]) for size, parts in tree["by_trait"].items()}
    named = {"config": "design", "teams": "given", "boards": "problems", "forced": "by_trait"}
    general = {old: new for new, old in named.items()}
    found = {}
    for name, value in tree.items():
        if name == "given":
            value = list(value.get("agents", ()))
        found[general.get(name, name)] = forced if name == "by_trait" else to_lake(value)
    return found | {"version": 2}


def _evidence_in(tree: Tree) -> Tree:
    named = {"config": "design", "teams": "given", "boards": "problems", "forced": "by_trait"}
    found = {}
    for name, value in tree.items():
        read = from_lake(value)
        if name == "teams":
            read = {"agents": value} if value else {}
        elif name == "forced":
            read = {size: {WAIT: part} for size, part in read.items()}
        found[named.get(name, name)] = read
    return found | {"version": 3}


def _level_out(tree: Tree) -> Tree:
    return {"row": tree["problem"]["data"], **{name: value for name, value in tree.items() if name != "problem"}}


def _level_in(tree: Tree) -> Tree:
    problem = msgspec.to_builtins(problem_of(read_row(tree["row"])))
    return {"problem": problem, **{name: value for name, value in tree.items() if name != "row"}}


def _validation_out(tree: Tree) -> Tree:
    return {
        "sizes": {size: _tally_out(part) for size, part in tree["outcomes"].items()},
        "examples": [_example_out(example) for example in tree["examples"]],
        "forced": _by_trait_out(tree["by_trait"]),
        "valid": tree["valid"],
    }


def _validation_in(tree: Tree) -> Tree:
    return {
        "outcomes": {size: _tally_in(part) for size, part in tree["sizes"].items()},
        "examples": [_example_in(example) for example in tree["examples"]],
        "by_trait": {size: {WAIT: _tally_in(part)} for size, part in tree.get("forced", {}).items()},
        "valid": tree["valid"],
    }


def _example_out(tree: Tree) -> Tree:
    seen, place = tree["data"], {"failure": tree["failure"], "agent": tree["data"]["agent"], "step": tree["place"]}
    return {"row": tree["problem"]["data"], "plan": seen["plan"], **place}


def _example_in(tree: Tree) -> Tree:
    problem = msgspec.to_builtins(problem_of(read_row(tree["row"])))
    data = {"plan": tree["plan"], "agent": tree["agent"]}
    return {"problem": problem, "answer": "", "failure": tree["failure"], "place": tree["step"], "data": data}


def _sampled_out(tree: Tree) -> Tree:
    sizes = {size: _statistics_out(part) for size, part in tree["statistics"].items()}
    return {"sizes": sizes, **{name: to_lake(value) for name, value in tree.items() if name != "statistics"}}


def _sampled_in(tree: Tree) -> Tree:
    statistics = {size: _statistics_in(part) for size, part in tree["sizes"].items()}
    return {"statistics": statistics, **{name: from_lake(value) for name, value in tree.items() if name != "sizes"}}


_WRITERS = [
    (_has_field("outcomes", "examples", "by_trait"), _validation_out),
    (_has_field("statistics", "sampler", "figures"), _sampled_out),
    (_has_field("version", "design", "outcomes"), _evidence_out),
    (lambda tree: _has_field("strata", "given")(tree) and "agents" in tree["given"], _design_out),
    (_has_field("changes", "reason"), _edit_out),
    (lambda tree: "cell" in tree and isinstance(tree.get("groups"), dict), _groups_out),
    (_has_field("cell", "answers", "valid"), _trial_out),
    (_has_field("problems", "valid", "failures", "grades"), _tally_out),
    (_has_field("problems", "knobs", "measures"), _statistics_out),
    (_has_field("stratum", "failure", "place", "data"), _case_out),
    (_has_field("problem"), _level_out),
]
_READERS = [
    (_has_field("sizes", "examples", "valid"), _validation_in),
    (_has_field("sizes", "sampler", "figures"), _sampled_in),
    (lambda tree: tree.get("version") == 2 and "config" in tree, _evidence_in),
    (lambda tree: "sizes" in tree and set(tree) <= {"sizes", "agents"}, _design_in),
    (lambda tree: "reason" in tree and "changes" not in tree and any(name in tree for name in COLUMNS), _edit_in),
    (_has_field("size", "hole_ratio", "forced", "groups"), _groups_in),
    (_has_field("stratum", "plans", "valid"), _trial_in),
    (_has_field("boards", "valid", "optimal_makespan", "wait_boards"), _tally_in),
    (_has_field("boards", "hole_ratio", "makespan", "acceptance"), _statistics_in),
    (_has_field("size", "grid", "starts", "plan", "failure", "step"), _case_in),
    (_has_field("row"), _level_in),
]
