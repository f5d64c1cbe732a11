"""POST /redeem for customers; /codes for the organisation that issues them."""

from collections.abc import AsyncIterator
from typing import cast

import msgspec

from countersign.kernel import clock
from countersign.kernel.database.port import Row
from countersign.kernel.errors import NotFound
from countersign.kernel.http import cursor, response
from countersign.kernel.http.cursor import InvalidCursor
from countersign.kernel.http.idempotency import HEADER
from countersign.kernel.http.response import Response
from countersign.kernel.http.routing import Nothing, route
from countersign.kernel.security.encryption import decrypt_with_secret, encrypt_with_secret
from countersign.store import library
from countersign.store.auth.callers import StoreRequest
from countersign.store.auth.organisations import organisation_of
from countersign.store.redeem import codes
from countersign.store.redeem.codes import PreparedBatch, RedeemCode
from countersign.store.redeem.redeem import (
    CodeAlreadyRedeemed,
    CodeExpired,
    CodeNotFound,
    CodeRevoked,
    find_code,
    redeem,
)
from countersign.store.redeem.schemas import (
    Batch,
    BatchQuery,
    CodesQuery,
    IssuedBatch,
    NewBatch,
    RedeemRequest,
    RedeemResult,
    Revocation,
    RevokedBatch,
)

ADMIN = "admin:org"
CSV = "text/csv; charset=utf-8"
CSV_HEAD = b"code\n"
ALREADY_REDEEMED = "Already-Redeemed"
NEWEST_POSSIBLE = ((1 << 62), "\U0010ffff")


class BatchNotFound(NotFound):
    """The organisation has no batch with this id."""

    resolution = "List the batches with GET /api/v1/codes."


async def prepare_redeem(call: StoreRequest[Nothing, RedeemRequest]) -> RedeemCode:
    """Find the code, or count a wrong guess, before the transaction of the request begins."""
    return await find_code(call.context, call.caller.owner, call.address, call.body.code)


async def redeem_code(call: StoreRequest[Nothing, RedeemRequest]) -> Response:
    """Redeem a code into the caller's library. Repeating it returns the same response, with the header
    `Already-Redeemed: true`."""
    code = cast("RedeemCode", call.prepared)
    redemption = await redeem(call.transaction, call.caller.owner, call.body.code, code)
    headers = ((ALREADY_REDEEMED, "true"),) if redemption.is_repeated else ()
    return response.json(redemption.result, headers=headers)


async def prepare_codes(call: StoreRequest[CodesQuery, NewBatch]) -> PreparedBatch:
    """Store the codes before the transaction of the request begins, because storing many codes takes long."""
    return await codes.prepare_batch(call.context, call.caller, call.query.org, call.body)


async def issue_codes(call: StoreRequest[CodesQuery, NewBatch]) -> Response:
    """Issue codes; only this response contains them in full."""
    prepared_batch = msgspec.convert(call.prepared, PreparedBatch)
    key = call.headers.get(HEADER)
    # The seed is encrypted with the Idempotency-Key, so that a repeated request returns the codes again. Without a key,
    # the seed is discarded.
    encrypted_seed = (
        None
        if key is None
        else encrypt_with_secret(_idempotency_key_bytes(key), prepared_batch.batch_id.encode(), prepared_batch.seed)
    )
    await call.transaction.run(codes.ACTIVATE_BATCH, prepared_batch.batch_id, encrypted_seed)
    return _issued_response(prepared_batch, "text/csv" in (call.headers.get("accept") or ""))


def _idempotency_key_bytes(header: str) -> bytes:
    return header.strip().strip('"').lower().encode()


def _issued_response(prepared_batch: PreparedBatch, as_csv: bool) -> Response:
    body = _csv(prepared_batch) if as_csv else _document(prepared_batch)
    return Response(201, body, CSV if as_csv else "application/json", (("Batch-Id", prepared_batch.batch_id),))


async def replay_codes(call: StoreRequest[CodesQuery, NewBatch], replayed: Response) -> Response:
    """Return the codes of a batch again, for a repeated request with the same Idempotency-Key."""
    batch_id = dict(replayed.headers)["Batch-Id"]
    row = await call.context.database.fetch_one(codes.SEALED_SEED, batch_id)
    if row is None or row[0] is None:
        raise BatchNotFound("the batch no longer exists")
    seed = decrypt_with_secret(_idempotency_key_bytes(call.headers.get(HEADER) or ""), batch_id.encode(), bytes(row[0]))
    answer = _issued_response(PreparedBatch(batch_id, seed, row[1]), replayed.media_type == CSV)
    answer.headers = replayed.headers
    return answer


async def _csv(prepared_batch: PreparedBatch) -> AsyncIterator[bytes]:
    yield CSV_HEAD
    async for lines in codes.encode_codes(prepared_batch):
        yield lines


async def _document(prepared_batch: PreparedBatch) -> AsyncIterator[bytes]:
    yield b'{"batch_id":"%b","codes":[' % prepared_batch.batch_id.encode()
    separator = b'"'
    async for lines in codes.encode_codes(prepared_batch):
        yield separator + lines.rstrip().replace(b"\n", b'","') + b'"'
        separator = b',"'
    yield b"]}"


async def list_batches(call: StoreRequest[BatchQuery, Nothing]) -> Response:
    """List the organisation's batches of codes with their usage, newest first."""
    store, query = call.context, call.query
    org = await organisation_of(store.database, call.caller, query.org, ADMIN)
    after_key = NEWEST_POSSIBLE
    if query.cursor is not None:
        position = cursor.read(store.cursors, query.cursor, "codes", int, str)
        if position.filter != [org.id]:
            raise InvalidCursor("made for another organisation")
        after_key = (int(position.after[0]), str(position.after[1]))
    rows = await codes.batches(store.database, org.id, after_key, query.limit + 1)
    headers: tuple[tuple[str, str], ...] = ()
    if len(rows) > query.limit:
        rows.pop()
        position = cursor.Position("codes", [org.id], [rows[-1][8], rows[-1][0]])
        text = cursor.write(store.cursors, position)
        headers = (("Link", f'<{store.base_url}/codes?limit={query.limit}&cursor={text}>; rel="next"'),)
    return response.json([_batch(row) for row in rows], headers=headers)


def _batch(row: Row) -> Batch:
    batch_id, kind, products, count, max_uses, valid_from, expires_at, status, created_at, uses = row
    return Batch(
        batch_id=batch_id,
        kind=kind,
        products=msgspec.json.decode(products, type=list[str]),
        count=count,
        max_uses=max_uses,
        valid_from=clock.rfc3339_or_none(valid_from),
        expires_at=clock.rfc3339_or_none(expires_at),
        status=status,
        uses=int(uses),
        created_at=clock.rfc3339(created_at),
    )


async def revoke_batch(call: StoreRequest[CodesQuery, Revocation]) -> Response:
    """Revoke a batch, so that its codes are no longer valid. With `entitlements`, the entitlements that its codes
    granted are revoked too."""
    org = await organisation_of(call.transaction, call.caller, call.query.org, ADMIN)
    batch_id = call.path["batch_id"]
    if not await call.transaction.run(codes.REVOKE_BATCH, batch_id, org.id):
        raise BatchNotFound("the organisation has no batch with this id")
    revoked_codes = 0
    if call.body.entitlements:
        revoked_codes = await library.revoke_by_source(call.transaction, f"batch:{batch_id}", clock.now())
    return response.json(RevokedBatch(batch_id, "revoked", revoked_codes))


_REDEEM_REFUSALS = (CodeNotFound, CodeAlreadyRedeemed, CodeExpired, CodeRevoked)

ROUTES = (
    route(
        "POST",
        "/redeem",
        redeem_code,
        body=RedeemRequest,
        prepare=prepare_redeem,
        prepare_before_batch=prepare_redeem,
        answers={200: RedeemResult},
        refusals=_REDEEM_REFUSALS,
        scope="read:library",
        writes=True,
        documented=True,
        sends={200: (ALREADY_REDEEMED,)},
    ),
    route(
        "POST",
        "/codes",
        issue_codes,
        query=CodesQuery,
        body=NewBatch,
        prepare=prepare_codes,
        derive=replay_codes,
        answers={201: IssuedBatch},
        scope=ADMIN,
        writes=True,
        secret=True,
        produces=("application/json", CSV),
        sends={201: ("Batch-Id",)},
        example={"kind": "promo", "products": ["star-harbour"], "count": 100, "max_uses": 5},
    ),
    route(
        "GET",
        "/codes",
        list_batches,
        query=BatchQuery,
        answers={200: list[Batch]},
        refusals=(InvalidCursor,),
        scope=ADMIN,
        sends={200: ("Link",)},
    ),
    route(
        "POST",
        "/codes/{batch_id}/revoke",
        revoke_batch,
        query=CodesQuery,
        body=Revocation,
        answers={200: RevokedBatch},
        refusals=(BatchNotFound,),
        scope=ADMIN,
        writes=True,
    ),
)
