"""The keys of trusted issuers: fetched from the configured address alone, kept in each worker."""

from countersign.distribution.context import Store
from countersign.distribution.issuers.queries import Issuer
from countersign.kernel import safe_http_client, telemetry
from countersign.kernel.errors import Unavailable
from countersign.kernel.safe_http_client import Document
from countersign.kernel.security.external_jwt import CannotFetchKeySet, ExternalToken, JwksCache, PublicKey
from countersign.settings import Settings


def key_sets(settings: Settings) -> JwksCache:
    """An empty cache of key sets; COUNTERSIGN_PRIVATE_ISSUERS says whether they may come from a private network."""

    async def fetch(address: str) -> Document:
        try:
            return await safe_http_client.get_json(address, private=settings.private_issuers)
        except safe_http_client.Unreachable as error:
            raise CannotFetchKeySet(str(error)) from error

    return JwksCache(fetch)


async def key_of(store: Store, trusted: Issuer, token: ExternalToken) -> PublicKey | None:
    """The issuer's key that the token's header means, if its algorithm is allowed to the issuer.

    Raises:
        Unavailable: the issuer's keys cannot be had now. Why is in the log: an answer that told it would let a
            stranger look around in our network.
    """
    if token.algorithm not in trusted.algorithms:
        return None
    try:
        return await store.key_sets.key(trusted.jwks_uri, token.algorithm, token.kid)
    except CannotFetchKeySet as error:
        telemetry.logger("issuers").warning("keys cannot be fetched", issuer=trusted.issuer, reason=str(error))
        raise Unavailable("the keys of the token's issuer cannot be had at the moment") from error
