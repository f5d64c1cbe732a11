"""A question to its answer: by the grammar, and where that gives up and a model is configured, with its help."""

from countersign.distribution.ask.answered import answered, run_named
from countersign.distribution.ask.answers import Answered
from countersign.distribution.context import Store
from countersign.kernel.clock import Instant

BY_MODEL = 0.6


async def answer(store: Store, question: str, now: Instant, *, is_reworded: bool = False) -> Answered:
    """The answer; with `is_reworded`, in a model's words where those say nothing else.

    What a model answers is a stranger's text: it becomes a typed query, or a wording of an answer that is there.
    """
    found = await answered(store, question, now)
    settings = store.settings
    if not settings.ask_model_url:
        return found
    # Imported here: few have a model, and what speaks to it makes every start a tenth of a second longer.
    from countersign.distribution.ask import model, rewording

    if found.kind == "refused" and not found.candidates:
        query = await model.interpreted(settings, question, now)
        if query is not None:
            read = await run_named(store, query, BY_MODEL)
            found = found if read.kind == "refused" else read
    if is_reworded and found.kind != "refused":
        return await rewording.reworded(settings, question, found)
    return found
