"""Which organisation a request is about, when its caller may act in one or in several."""

from countersign.distribution.identity import queries
from countersign.distribution.identity.callers import Caller
from countersign.distribution.identity.gate import InsufficientScope
from countersign.distribution.identity.queries import Organisation
from countersign.kernel.database.port import Reader
from countersign.kernel.errors import invalid_parameter


async def organisation_of(reader: Reader, caller: Caller, slug: str | None, scope: str) -> Organisation:
    """The organisation named by `slug`, or the only one in which the caller may do what `scope` names.

    Raises:
        InsufficientScope: the caller may not act in the named organisation, whether it exists or not.
        InvalidRequest: none is named and there are several.
    """
    allowed = caller.orgs_allowing(scope)
    if slug is not None:
        found = await queries.organisation_called(reader, slug)
        if found is None or found.id not in allowed:
            raise InsufficientScope(f"this needs the scope {scope} in the organisation {slug}")
        return found
    if len(allowed) > 1:
        raise invalid_parameter("org", "is required, as you act in several organisations")
    found = await queries.organisation(reader, allowed[0]) if allowed else None
    if found is None:
        raise InsufficientScope(f"this needs the scope {scope} in an organisation")
    return found
