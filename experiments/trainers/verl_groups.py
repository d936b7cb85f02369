"""verl's replay buffers with figures of the groups in a batch, which verl logs; named in verl's own configuration.

trainer.v1.sampler.custom_sampler.path=pkg://lakewright.experiments.trainers.verl_groups
trainer.v1.sampler.custom_sampler.name=EngineerReplayBuffer

With an asynchronous `trainer.v1.trainer_mode` it is `EngineerReplayBufferAsync`.
"""

from collections import defaultdict
from typing import Any

from lakewright.core_jax.support import naming_extra
from lakewright.engineer.problems import Verdict
from lakewright.engineer.signal import list_metrics
from lakewright.experiments.trainers.verl import SOURCE

with naming_extra(__name__, "verl"):
    import transfer_queue
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync


class EngineerReplayBuffer(ReplayBuffer):
    """verl's replay buffer; `sample` also measures groups."""

    def sample(self, *arguments: Any, **named: Any) -> tuple[transfer_queue.KVBatchMeta, dict[str, Any]]:
        """A batch and its figures, as in verl, with `measure_groups` of the batch."""
        batch, figures = super().sample(*arguments, **named)
        return batch, figures | measure_groups(batch)


class EngineerReplayBufferAsync(ReplayBufferAsync):
    """Likewise for asynchronous trainers."""

    def sample(self, *arguments: Any, **named: Any) -> tuple[transfer_queue.KVBatchMeta, dict[str, Any]]:
        """As in `EngineerReplayBuffer`."""
        batch, figures = super().sample(*arguments, **named)
        return batch, figures | measure_groups(batch)


def measure_groups(batch: transfer_queue.KVBatchMeta) -> dict[str, float]:
    """The metrics of the groups of a training batch from `list_metrics`, such as `engineer/STRATUM/signal`.

    Answers to problems of other data sets, and those that `EngineerRewardManager` did not judge, are left out.
    """
    if batch.partition_id != "train" or not batch.keys:
        return {}
    lengths, last = defaultdict[str, int](int), dict[str, tuple[int, str]]()
    for key, tag in zip(batch.keys, batch.tags, strict=True):  # verl's keys: GROUP_ANSWER_PART
        answer, _, part = key.rpartition("_")
        lengths[answer] += tag.get("response_len", 0)
        last[answer] = max(last.get(answer, (-1, "")), (int(part), key))
    found = transfer_queue.kv_batch_get(
        keys=[key for _, key in last.values()],
        partition_id=batch.partition_id,
        select_fields=["data_source", "extra_fields"],
    )
    groups = defaultdict[str, list[tuple[str, Verdict, int]]](list)
    for answer, source, told in zip(last, found["data_source"], found["extra_fields"], strict=True):
        name, judged = str(_unwrap(source)), _unwrap(told).get("reward_extra_info", {})
        if name.startswith(SOURCE) and {"acc", "score"} <= judged.keys():
            verdict = Verdict(bool(judged["acc"]), judged["score"])
            groups[answer.rpartition("_")[0]].append((name.removeprefix(SOURCE), verdict, lengths[answer]))
    return list_metrics(
        (members[0][0], [verdict for _, verdict, _ in members], [length for *_, length in members])
        for members in groups.values()
    )


def _unwrap(value: Any) -> Any:
    """Plain data, which a TensorDict may have wrapped."""
    return getattr(value, "data", value)
