"""Whether a waiting plan could only end as stale, as far as somebody sees the records it is about."""

from collections.abc import Iterator, Sequence

from countersign.records.access.view import ModelView
from countersign.records.approvals.steps import Step
from countersign.records.commands import incoming
from countersign.records.commands.run import Run


async def is_overtaken(run: Run, kept: Sequence[Step]) -> bool:
    """That a record of the plan is gone to the viewer, or has changed in what it sees.

    Nobody is told more than reading the records tells: to whom fields are hidden, changes are not counted, and of the
    records that the plan reads those count that the viewer sees. What hangs on the records is looked at when the plan
    is approved.
    """
    for view, several in _by_model(run, kept):
        found = await incoming.revisions(run, view, [step.record_id or "" for step in several])
        for step in several:
            revision = found.get(step.record_id or "")
            if revision is None or (revision != step.revision and not view.denied):
                return True
    return await _has_read_another(run, kept)


async def _has_read_another(run: Run, kept: Sequence[Step]) -> bool:
    read: dict[str, dict[str, int]] = {}
    for model, record_id, revision in (each for step in kept for each in step.read_revisions):
        read.setdefault(model, {})[record_id] = revision
    for name, revisions in read.items():
        view = run.caller.view.models.get(name)
        if view is None or view.denied:
            continue
        found = await incoming.revisions(run, view, list(revisions))
        if any(revision != revisions[record_id] for record_id, revision in found.items()):
            return True
    return False


def _by_model(run: Run, kept: Sequence[Step]) -> Iterator[tuple[ModelView, list[Step]]]:
    about = [step for step in kept if step.record_id is not None]
    for name in dict.fromkeys(step.model for step in about):
        view = run.caller.view.models.get(name)
        if view is not None:
            yield view, [step for step in about if step.model == name]
