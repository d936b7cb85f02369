"""Decoding with a board network: maps are made once for a prompt, joint states once a step, choices for every word."""

from typing import Any

import torch

from lakewright.policy.networks.joint_step import LOW
from lakewright.policy.networks.prompt_parsing import NOWHERE, Boards, parse_boards


class BoardDecoder:
    """The state of B boards with G answers each: where the agents of every answer are, and whose turn it is."""

    def __init__(self, model: Any, copies: int, length: int) -> None:
        self._model, self._copies = model, copies  # the length is known to the caller alone

    def read(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Reads prompts int [B, P]: the logits of the first word of answers, [B, G, V]. mask: not needed."""
        boards = parse_boards(ids)
        self._maps, which = self._model.maps_of(boards)
        answers = torch.arange(len(ids), device=ids.device).repeat_interleave(self._copies)
        self._boards, self._which = boards[answers], which[answers]
        self._cells = self._before = self._boards.starts
        self._following = self._cells.clone()
        self._past = self._cells[:, None]
        self._turn = torch.zeros_like(answers)
        self._known = self._model.steps.look(boards, self._maps, which, boards.starts, boards.starts)[answers]
        return self._logits()

    def add(self, tokens: torch.Tensor) -> torch.Tensor:
        """Adds one word to every answer, int [B, G]: the logits of the next, [B, G, V]."""
        rows = torch.arange(len(self._turn), device=tokens.device)
        self._following[rows, self._turn] = self._boards.cells_of(tokens.flatten())
        self._turn = self._turn + 1
        over = (self._turn == self._boards.there.sum(1)).nonzero().squeeze(1)
        if len(over):
            self._next_step(over)
        return self._logits()

    def keep(self, boards: torch.Tensor) -> None:
        """Continues with some boards only, int [B']."""
        rows = (boards[:, None] * self._copies + torch.arange(self._copies, device=boards.device)).flatten()
        self._boards, self._which, self._turn = self._boards[rows], self._which[rows], self._turn[rows]
        self._cells, self._before, self._past = self._cells[rows], self._before[rows], self._past[rows]
        self._following, self._known = self._following[rows], self._known[rows]

    def _next_step(self, rows: torch.Tensor) -> None:
        """All agents of these answers have moved."""
        before, cells, boards = self._cells[rows], self._following[rows], self._boards[rows]
        self._turn = self._turn.index_fill(0, rows, 0)
        self._before = self._before.index_copy(0, rows, before)
        self._cells = self._cells.index_copy(0, rows, cells)
        arrived = torch.full_like(self._cells, NOWHERE).index_copy(0, rows, cells)
        self._past = torch.cat([self._past, arrived[:, None]], 1)
        known = self._model.steps.look(boards, self._maps, self._which[rows], cells, before)
        self._known = self._known.index_copy(0, rows, known)

    def _logits(self) -> torch.Tensor:
        boards: Boards = self._boards
        rows = torch.arange(len(self._turn), device=self._turn.device)
        logits, words = self._model.steps.decide(
            boards, self._known, self._cells, self._following, self._past, rows, self._turn
        )
        spread = logits.new_full((len(rows), self._model.config.vocab_size), LOW).scatter(1, words, logits)
        return spread.unflatten(0, (-1, self._copies))
