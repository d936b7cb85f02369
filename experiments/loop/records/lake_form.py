"""The form of the lake's records on disk, which have names of their own: sizes, boards, agents, forced waits.

Runs of the lake wrote these files before the engineer knew other environments, and programs of users read them. So a
record of a run of the lake is written in this form, and read from it; inside the program there is one form. `FORMS`
says by type of record how the two differ, and types of fields lead to the records within.
"""

import functools
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from lakewright.core_jax.config import hole_ratio_of, holes_of
from lakewright.core_jax.results import BoardOutcomes
from lakewright.engineer.design import Design, Edit
from lakewright.engineer.difficulty import CellForecast, HeldOutCell
from lakewright.engineer.evidence import CellGroups, Evidence, Round
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.steps import Next
from lakewright.engineer.tally import Case, Drawn, Tally
from lakewright.engineer.trial import CellTrial, Trial, Tried
from lakewright.experiments.environments.lake import WAIT, convert_row, outcomes_of, problem_of, tally_of
from lakewright.experiments.loop.records.stage_records import DecisionRecord, Example, SampledRecord, Validation

COLUMNS = ("data_ratio", "hole_ratio", "wait_ratio")
Tree = Any


class LakeForm(NamedTuple):
    """The lake's form of a type of record.

    names: the lake's names of fields, by the general name. shown: fields of which at least one is there only in the
    lake's form, by default its names. write, read: what else differs, with the general names; the parts of the record
    are in the lake's form. leaf: whether they convert the parts, too.
    """

    names: Mapping[str, str] = {}
    shown: tuple[str, ...] = ()
    write: Callable[[Tree], Tree] = lambda tree: tree
    read: Callable[[Tree], Tree] = lambda tree: tree
    leaf: bool = False

    def to_lake(self, tree: Tree) -> Tree:
        """Plain values of a record in the lake's form."""
        return {self.names.get(name, name): value for name, value in self.write(tree).items()}

    def from_lake(self, tree: Tree) -> Tree:
        """The inverse; values that are not in the lake's form are returned as they are."""
        if not any(name in tree for name in self.shown or self.names.values()):
            return tree
        general = {own: name for name, own in self.names.items()}
        try:
            return self.read({general.get(name, name): value for name, value in tree.items()})
        except (
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
        ):  # a damaged file: its conversion says where
            return tree


def to_lake(value: Any) -> Tree:
    """Plain values of a record, or of a table or list of records, in the lake's form."""
    if isinstance(value, msgspec.Struct):
        return _convert(msgspec.to_builtins(value, str_keys=True), type(value), writing=True)
    if isinstance(value, Mapping):
        return {str(name): to_lake(part) for name, part in value.items()}
    return [to_lake(part) for part in value] if isinstance(value, list | tuple) else value


def from_lake(tree: Tree, kind: type[msgspec.Struct]) -> Tree:
    """Plain values of a record of type `kind`, which may be in the lake's form, in the general one."""
    return _convert(tree, kind, writing=False)


def _convert(tree: Tree, kind: Any, *, writing: bool) -> Tree:
    """Plain values of a type in the other form, with the records within it."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        records = [one for one in typing.get_args(kind) if _is_record(one)]
        return _convert(tree, records[0], writing=writing) if records else tree
    parts = typing.get_args(kind)
    if isinstance(tree, list | tuple) and typing.get_origin(kind) in (list, tuple):
        return [_convert(part, parts[0], writing=writing) for part in tree]
    if not isinstance(tree, dict):
        return tree
    if typing.get_origin(kind) is dict:
        return {name: _convert(part, parts[1], writing=writing) for name, part in tree.items()}
    return _convert_record(tree, kind, writing=writing) if _is_record(kind) else tree


def _convert_record(tree: Tree, kind: type[msgspec.Struct], *, writing: bool) -> Tree:
    form, fields = FORMS.get(kind, LakeForm()), _fields_of(kind)
    tree = tree if writing else form.from_lake(tree)
    if not form.leaf:
        tree = {name: _convert(part, fields.get(name), writing=writing) for name, part in tree.items()}
    return form.to_lake(tree) if writing else tree


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


@functools.cache
def _fields_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The types of the fields of a type of record, by their names in files."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}


def _write_design(tree: Tree) -> Tree:
    return {"strata": tree["strata"], "agents": tree["given"]["agents"]}


def _read_design(tree: Tree) -> Tree:
    return {"strata": tree["strata"], "given": {"agents": tree.get("agents", 2)}}


def _write_edit(tree: Tree) -> Tree:
    return {**{name: tree["changes"].get(name, 0.0) for name in COLUMNS}, "reason": tree["reason"]}


def _read_edit(tree: Tree) -> Tree:
    others = {name: value for name, value in tree.items() if name not in COLUMNS}
    return {"changes": {name: float(tree.get(name, 0.0)) for name in COLUMNS}, **others}


def _write_cell(tree: Tree) -> Tree:
    """With a cell [size, [hole ratio, wait], agents] as [size, hole ratio, wait]."""
    return tree | {"cell": [tree["cell"][0], *tree["cell"][1]]}


def _read_cell(tree: Tree) -> Tree:
    cell = tree["cell"]
    own = isinstance(cell, list) and len(cell) == 3 and not isinstance(cell[1], list)
    return tree | {"cell": [cell[0], cell[1:]]} if own else tree


def _write_groups(tree: Tree) -> Tree:
    size, (hole_ratio, forced) = tree["cell"][:2]
    return {"size": size, "hole_ratio": hole_ratio, "forced": bool(forced), "groups": tree["groups"]}


def _read_groups(tree: Tree) -> Tree:
    return {"cell": [tree["size"], [tree["hole_ratio"], tree["forced"]]], "groups": tree["groups"]}


def _write_cell_trial(tree: Tree) -> Tree:
    size, (hole_ratio, wait), (agents,) = tree["cell"]
    stratum = {"size": size, "agents": agents, "holes": holes_of(size, agents, hole_ratio), "wait": bool(wait)}
    return {"stratum": stratum, "answers": tree["answers"], "valid": tree["valid"]}


def _read_cell_trial(tree: Tree) -> Tree:
    size, agents, holes, wait = (tree["stratum"][name] for name in ("size", "agents", "holes", "wait"))
    cell = [size, [hole_ratio_of(size, agents, holes), wait], [agents]]
    return {"cell": cell, "answers": tree["answers"], "valid": tree["valid"]}


def _write_tally(tree: Tree) -> Tree:
    return msgspec.to_builtins(outcomes_of(msgspec.convert(tree, Tally)))


def _read_tally(tree: Tree) -> Tree:
    return msgspec.to_builtins(tally_of(msgspec.convert(tree, BoardOutcomes)))


def _write_drawn(tree: Tree) -> Tree:
    return {"problems": tree["problems"], **tree["knobs"], **tree["measures"], "acceptance": tree["acceptance"]}


def _read_drawn(tree: Tree) -> Tree:
    return {
        "problems": tree["problems"],
        "knobs": {name: tree[name] for name in COLUMNS[1:]},
        "measures": {name: tree[name] for name in ("makespan", "sum_of_costs")},
        "acceptance": tree["acceptance"],
    }


def _write_case(tree: Tree) -> Tree:
    seen = tree["data"]
    ends = {name: seen[name] for name in ("grid", "starts", "goals", "plan")}
    failed = {"failure": tree["failure"], "agent": seen["agent"], "place": tree["place"]}
    return {"stratum": tree["stratum"], **ends, **failed}


def _read_case(tree: Tree) -> Tree:
    data = {name: tree[name] for name in ("grid", "starts", "goals", "plan", "agent")}
    return {**{name: tree[name] for name in ("stratum", "failure", "place")}, "text": "", "data": data}


def _write_example(tree: Tree) -> Tree:
    seen, place = tree["data"], {"failure": tree["failure"], "agent": tree["data"]["agent"], "place": tree["place"]}
    return {"row": tree["problem"]["data"], "plan": seen["plan"], **place}


def _read_example(tree: Tree) -> Tree:
    seen = {name: tree[name] for name in ("failure", "place")}
    return {"problem": _read_problem(tree["row"]), "answer": "", **seen, "data": _pick(tree, "plan", "agent")}


def _write_evidence(tree: Tree) -> Tree:
    return _write_forced(tree) | {"given": list(tree["given"].get("agents", ())), "version": 2}


def _read_evidence(tree: Tree) -> Tree:
    agents = tree.get("given")
    return _read_forced(tree) | {"given": {"agents": agents} if agents else {}, "version": 3}


def _write_validation(tree: Tree) -> Tree:
    return _write_forced(_pick(tree, "outcomes", "examples", "by_trait", "valid"))


def _write_forced(tree: Tree) -> Tree:
    """With the outcomes on boards with a forced wait, of each size that has some, without the name of this trait."""
    return tree | {"by_trait": {size: parts[WAIT] for size, parts in tree["by_trait"].items() if WAIT in parts}}


def _read_forced(tree: Tree) -> Tree:
    return tree | {"by_trait": {size: {WAIT: part} for size, part in tree.get("by_trait", {}).items()}}


def _convert_state(name: str, convert: Callable[[Tree], Tree]) -> Callable[[Tree], Tree]:
    return lambda tree: tree | {name: convert(tree[name])} if name in tree else tree


def _write_state(tree: Tree) -> Tree:
    """The state of a teacher or a sampler, which has no type, with its designs and problems in the lake's form."""
    if isinstance(tree, list | tuple):
        return [_write_state(part) for part in tree]
    if not isinstance(tree, dict):
        return tree
    if "strata" in tree and "agents" in tree.get("given", ()):
        return FORMS[Design].to_lake(tree)
    if "problem" in tree:
        return {"row": tree["problem"]["data"], **{name: value for name, value in tree.items() if name != "problem"}}
    return {name: _write_state(part) for name, part in tree.items()}


def _read_state(tree: Tree) -> Tree:
    if isinstance(tree, list):
        return [_read_state(part) for part in tree]
    if not isinstance(tree, dict):
        return tree
    if "sizes" in tree and set(tree) <= {"sizes", "agents"}:
        return FORMS[Design].from_lake(tree)
    if "row" in tree:
        return {"problem": _read_problem(tree["row"]), **{name: tree[name] for name in tree if name != "row"}}
    return {name: _read_state(part) for name, part in tree.items()}


def _read_problem(row: Tree) -> Tree:
    return msgspec.to_builtins(problem_of(convert_row(row)))


def _pick(tree: Tree, *names: str) -> Tree:
    return {name: tree[name] for name in names}


CELL = LakeForm(shown=("cell",), write=_write_cell, read=_read_cell, leaf=True)
CONFIG = LakeForm({"design": "config"})
PRINTED = LakeForm(
    {"design": "config", "next_design": "next_config", "strata": "sizes", "rolled_back": "taken_back"}, leaf=True
)
"""Names of the lake in JSON that commands print."""
FORMS: dict[type[msgspec.Struct], LakeForm] = {
    Case: LakeForm({"stratum": "size", "place": "step"}, write=_write_case, read=_read_case, leaf=True),
    CellForecast: CELL,
    CellGroups: LakeForm(shown=("size",), write=_write_groups, read=_read_groups, leaf=True),
    CellTrial: LakeForm({"answers": "plans"}, write=_write_cell_trial, read=_read_cell_trial, leaf=True),
    DecisionRecord: LakeForm(
        shown=("teacher_state",),
        write=_convert_state("teacher_state", _write_state),
        read=_convert_state("teacher_state", _read_state),
    ),
    Design: LakeForm({"strata": "sizes"}, write=_write_design, read=_read_design, leaf=True),
    Drawn: LakeForm({"problems": "boards"}, write=_write_drawn, read=_read_drawn, leaf=True),
    Edit: LakeForm(shown=COLUMNS, write=_write_edit, read=_read_edit, leaf=True),
    Evidence: LakeForm(
        {"design": "config", "given": "teams", "problems": "boards", "by_trait": "forced"},
        write=_write_evidence,
        read=_read_evidence,
    ),
    Example: LakeForm({"place": "step"}, shown=("row",), write=_write_example, read=_read_example, leaf=True),
    GuardVerdict: CONFIG,
    HeldOutCell: CELL,
    Next: CONFIG,
    Round: CONFIG,
    SampledRecord: LakeForm(
        {"statistics": "sizes"},
        write=_convert_state("state", _write_state),
        read=_convert_state("state", _read_state),
    ),
    Tally: LakeForm(shown=("boards",), write=_write_tally, read=_read_tally, leaf=True),
    Trial: LakeForm({"cells": "strata"}),
    Tried: LakeForm({"design": "config", "strata": "sizes"}),
    Validation: LakeForm({"outcomes": "sizes", "by_trait": "forced"}, write=_write_validation, read=_read_forced),
}
