"""The one door for REST, MCP and batch plans: run a command for a caller, or make a plan of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from countersign.kernel.database.errors import ConstraintViolation
from countersign.kernel.errors import NotFound
from countersign.records.access.view import Caller, ModelView
from countersign.records.approvals import policy, propose
from countersign.records.approvals.propose import Proposal
from countersign.records.commands import command
from countersign.records.commands.command import Answering
from countersign.records.commands.refusals import BadInput
from countersign.records.commands.run import Body, Engine, Run, actor_of


@dataclass(frozen=True, slots=True)
class Done:
    """A command's value, and the fields of its model that were withheld."""

    denied: tuple[str, ...]
    value: object


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Runs commands. `own` holds the engine's own ones (plan.reject, session.revoke, …) by model and name."""

    engine: Engine
    own: Mapping[str, Mapping[str, Answering]]

    async def run(self, caller: Caller, model: str, name: str, body: Body, request_id: str) -> Done | Proposal:
        """Run the command, or for an agent that may only propose it, make a plan of it.

        Raises:
            NotFound: there is no such command for this caller.
            BadInput: the input is refused; nothing was written.
        """
        view = view_of(caller, model, name)
        run = Run(self.engine, caller, self.engine.records.database, actor_of(caller, request_id))
        if command.is_writing(view.model, name):
            return await self._write(run, view, name, body)
        own = self.own.get(model, {}).get(name)
        answer = own or command.READING[name]
        return Done(view.denied, await answer(run, model, body))

    async def _write(self, run: Run, view: ModelView, name: str, body: Body) -> Done | Proposal:
        try:
            async with self.engine.records.database.transaction() as transaction:
                inside = run.within(transaction)
                prepared = await command.check(inside, view, name, body)
                if await policy.needs_approval(inside, prepared):
                    return await propose.propose(inside, [prepared], why=None)
                record_id = await command.apply(inside, prepared)
                return Done(view.denied, await command.result(inside, prepared, record_id))
        except ConstraintViolation as error:
            # Somebody else was quicker: the checks before had found nothing in the way.
            raise BadInput(f"{view.model.name}.{name} clashes with a change made meanwhile; try again") from error


def view_of(caller: Caller, model: str, name: str) -> ModelView:
    """The caller's view of a model, if it has the command.

    Raises:
        NotFound: the command is unknown, hidden or forbidden: the same for all three.
    """
    view = caller.view.models.get(model)
    if view is None or name not in view.commands:
        raise NotFound("not found")
    return view
