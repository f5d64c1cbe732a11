"""The peer: FastAPI and SQLAlchemy's async session doing the same work the way a team would write it."""

import base64
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Query, Request
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey
from sqlalchemy import Connection, event, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import joinedload, selectinload

from contenders.peer_models import (
    CardOut,
    ChannelOut,
    Code,
    DetailOut,
    Entitlement,
    PageOut,
    Person,
    Product,
    RedeemIn,
    RedeemOut,
    Redemption,
)
from contenders.wanted import Wanted
from countersign.store.redeem import codes

SECRET = OctKey.import_key("bench-bench-bench-bench-bench-bench")


def token_of(person: str) -> str:
    """Return the peer's own bearer token of a person."""
    return jwt.encode({"alg": "HS256"}, {"sub": person, "exp": int(time.time()) + 86_400}, SECRET)


def _engine(config: Wanted) -> AsyncEngine:
    if not config.is_sqlite:
        url = config.database_url.replace("postgresql:", "postgresql+asyncpg:")
        settings = {"server_settings": {"search_path": "distribution", "jit": "off"}}
        return create_async_engine(url, pool_size=10, connect_args=settings)
    engine = create_async_engine(f"sqlite+aiosqlite:///{config.path}", connect_args={"timeout": 30}, pool_size=10)

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "mmap_size = 268435456"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that begins by reading could not write later while another one does.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if config.writes else "BEGIN")

    return engine


async def _session(request: Request) -> AsyncIterator[AsyncSession]:
    async with request.app.state.sessions() as session:
        yield session


Session = Annotated[AsyncSession, Depends(_session)]


async def _person(session: Session, authorization: Annotated[str, Header()]) -> Person:
    try:
        claims: dict[str, Any] = jwt.decode(authorization.removeprefix("Bearer "), SECRET).claims
    except JoseError as error:
        raise HTTPException(401) from error
    person = await session.get(Person, claims["sub"])
    if person is None:
        raise HTTPException(401)
    return person


Caller = Annotated[Person, Depends(_person)]


def _moment(microseconds: int) -> str:
    moment = datetime.fromtimestamp(microseconds / 1_000_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def cursor_of(title: str, product_id: str) -> str:
    """Return the peer's cursor: its keys in base64."""
    return base64.urlsafe_b64encode(json.dumps([title, product_id]).encode()).decode()


async def list_products(
    session: Session, limit: Annotated[int, Query(ge=1, le=100)] = 20, cursor: str | None = None
) -> PageOut:
    """Return a page of products."""
    statement = select(Product).where(Product.status == "public").order_by(Product.title, Product.id)
    if cursor is not None:
        after_key = json.loads(base64.urlsafe_b64decode(cursor))
        statement = statement.where(tuple_(Product.title, Product.id) > tuple_(*after_key))
    rows = list(await session.scalars(statement.limit(limit + 1)))
    following = cursor_of(rows[limit - 1].title, rows[limit - 1].id) if len(rows) > limit else None
    return PageOut(items=[CardOut.model_validate(row) for row in rows[:limit]], next_cursor=following)


async def show_product(session: Session, slug: str) -> DetailOut:
    """Return one product."""
    loads = (joinedload(Product.organisation), selectinload(Product.releases), selectinload(Product.media))
    product = await session.scalar(select(Product).where(Product.slug == slug).options(*loads))
    if product is None:
        raise HTTPException(404)
    published_releases = [
        release for release in product.releases if release.status == "published" and release.published_at is not None
    ]
    newest_by_channel = {
        each.channel: each for each in sorted(published_releases, key=lambda each: each.published_at or 0)
    }
    return DetailOut(
        **CardOut.model_validate(product).model_dump(),
        org=product.organisation.slug,
        access=product.access,
        status=product.status,
        channels=[
            ChannelOut(channel=each.channel, version=each.version, published_at=_moment(each.published_at or 0))
            for each in newest_by_channel.values()
        ],
        media=[media_file.alt for media_file in product.media],
        tags=product.tags,
        homepage=product.homepage,
        license=product.license,
        created_at=_moment(product.created_at),
        updated_at=_moment(product.updated_at),
    )


async def list_library(session: Session, caller: Caller) -> list[CardOut]:
    """Return the products that the caller owns."""
    statement = (
        select(Product)
        .join(Entitlement, Entitlement.product_id == Product.id)
        .where(Entitlement.owner == f"person:{caller.id}", Entitlement.revoked_at.is_(None))
        .order_by(Entitlement.granted_at.desc(), Entitlement.product_id.desc())
        .limit(51)
    )
    return [CardOut.model_validate(row) for row in list(await session.scalars(statement))[:50]]


async def redeem(session: Session, caller: Caller, body: RedeemIn) -> RedeemOut:
    """Redeem a code into the caller's library."""
    owner, now = f"person:{caller.id}", time.time_ns() // 1000
    statement = select(Code).where(Code.code_hash == codes.digest(body.code)).options(joinedload(Code.batch))
    code_row = await session.scalar(statement)
    if code_row is None:
        raise HTTPException(404)
    batch, products = code_row.batch, code_row.batch.products
    if batch.status != "active" or (batch.expires_at is not None and now >= batch.expires_at):
        raise HTTPException(410)
    is_owned = await session.get(Entitlement, (owner, products[0])) is not None
    if not is_owned:
        use_statement = update(Code).where(Code.code_hash == code_row.code_hash, Code.uses < batch.max_uses)
        if (await session.execute(use_statement.values(uses=Code.uses + 1))).rowcount != 1:
            raise HTTPException(409)
        session.add(Redemption(code_hash=code_row.code_hash, owner=owner, redeemed_at=now))
        source = f"batch:{batch.id}"
        session.add_all([Entitlement(owner=owner, product_id=each, granted_at=now, source=source) for each in products])
    try:
        await session.commit()
    except IntegrityError as error:
        raise HTTPException(409) from error
    return RedeemOut(success=True, product_id=products[0], products=products, already_owned=is_owned)


def create(config: Wanted) -> FastAPI:
    """Return the application."""
    app = FastAPI()
    app.state.sessions = async_sessionmaker(_engine(config), expire_on_commit=False)
    app.get("/products")(list_products)
    app.get("/products/{slug}")(show_product)
    app.get("/library")(list_library)
    app.post("/redeem")(redeem)
    return app
