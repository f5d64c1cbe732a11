"""One caller's placeholder tokens: computed from value ids and back, under the key of its domain."""

from collections.abc import Sequence

from countersign.records.access.view import Caller, Domain
from countersign.records.masking.permutation import MAX_TOGETHER, Permutation

MAX_KNOWN = 16_384
"""Token numbers kept of a domain, about 2 MB: those of what an agent is working on."""

MAX_DOMAINS = 128


class DomainMasks:
    """The tokens of one domain."""

    def __init__(self, domain: Domain) -> None:
        self._permutation = Permutation(domain.key)
        self._known: dict[int, int] = {}

    def tokens(self, ids: Sequence[int]) -> list[int]:
        """The numbers of the tokens of the value ids, in their order."""
        if len(ids) > MAX_TOGETHER:
            # Whoever reads so much at once would only push out what is read again and again.
            return self._permutation.encode(ids)
        known = self._known
        new = [each for each in ids if each not in known]
        if new:
            if len(known) >= MAX_KNOWN:
                known.clear()
                new = list(ids)
            known.update(zip(new, self._permutation.encode(new), strict=True))
        return [known[each] for each in ids]

    def value_id(self, number: int) -> int:
        """The value id that a token's number (below 2^48) would be made from."""
        return self._permutation.decode([number])[0]


class MaskStore:
    """The masks of the callers of this process, made once per domain."""

    def __init__(self) -> None:
        self._known: dict[Domain, DomainMasks] = {}

    def __call__(self, caller: Caller) -> DomainMasks | None:
        """The masks of the caller's domain; None for a caller without one."""
        if caller.domain is None:
            return None
        # By its key too: a domain that is opened again has another one.
        found = self._known.get(caller.domain)
        if found is None:
            if len(self._known) >= MAX_DOMAINS:
                self._known.clear()
            found = self._known[caller.domain] = DomainMasks(caller.domain)
        return found
