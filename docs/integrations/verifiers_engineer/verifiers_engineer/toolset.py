"""The tools of an episode of several turns, which verifiers runs in a process of their own: one for each rollout."""

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import verifiers.v1 as vf

from lakewright.engineer.multi_turn import list_tools
from verifiers_engineer.problems import EngineerData, Outcome, begin_episode, find_problem, watch_call

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer


class EngineerToolset(vf.Toolset[vf.ToolsetConfig, Outcome]):
    """Serves the tools of the episode of a task; each call notes the verdict so far in the state of the rollout."""

    TOOL_PREFIX = None

    async def setup_task(self, task: EngineerData) -> None:
        """Begins the episode."""
        self._task = task
        self._environment, self._episode, _ = begin_episode(task)
        self._problem = find_problem(task)

    def register(self, mcp: "MCPServer") -> None:
        """Offers the tools by their own names."""
        for name, tool in list_tools(self._episode).items():
            call = self._with_state(self._note_outcome(getattr(self._episode, name)))
            mcp.add_tool(call, name=name, description=inspect.getdoc(tool))

    def _note_outcome(self, tool: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(tool)
        async def call_tool(*arguments: Any, **named: Any) -> Any:
            with watch_call(tool.__name__, self._task):
                said = tool(*arguments, **named)
                said = await said if inspect.isawaitable(said) else said
                verdict, state = self._environment.end_episode(self._episode, self._problem), self.state
            state.called, state.valid, state.reward = True, verdict.valid, float(verdict.reward)
            state.failure, state.grades = verdict.failure, verdict.grades
            return said

        return call_tool


if __name__ == "__main__":
    EngineerToolset.run()
