"""The peer's tables and documents: SQLAlchemy models and pydantic schemas over the seeded schema."""

import json
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict
from sqlalchemy import BigInteger, ForeignKey, LargeBinary, String, Text, TypeDecorator
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


class JsonText(TypeDecorator[Any]):
    """JSON kept in a text column."""

    impl = Text
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Decode the stored value."""
        return None if value is None else json.loads(value)


class Base(DeclarativeBase):
    """Every model; numbers have 64 bits, as moments are microseconds."""

    type_annotation_map: ClassVar = {int: BigInteger}


class Organisation(Base):
    """A publisher."""

    __tablename__ = "organisation"
    id: Mapped[str] = mapped_column(primary_key=True)
    slug: Mapped[str]


class Product(Base):
    """A product."""

    __tablename__ = "product"
    id: Mapped[str] = mapped_column(primary_key=True)
    org_id: Mapped[str] = mapped_column(ForeignKey("organisation.id"))
    slug: Mapped[str]
    title: Mapped[str]
    description: Mapped[str | None]
    kind: Mapped[str]
    platforms: Mapped[list[str]] = mapped_column(JsonText)
    tags: Mapped[list[str]] = mapped_column(JsonText)
    homepage: Mapped[str | None]
    license: Mapped[str | None]
    access: Mapped[str]
    status: Mapped[str]
    created_at: Mapped[int]
    updated_at: Mapped[int]
    organisation: Mapped[Organisation] = relationship(lazy="raise")
    releases: Mapped[list["Release"]] = relationship(lazy="raise")
    media: Mapped[list["Media"]] = relationship(lazy="raise")


class Release(Base):
    """A release."""

    __tablename__ = "release"
    id: Mapped[str] = mapped_column(primary_key=True)
    product_id: Mapped[str] = mapped_column(ForeignKey("product.id"))
    version: Mapped[str]
    channel: Mapped[str]
    status: Mapped[str]
    published_at: Mapped[int | None]


class Media(Base):
    """A picture."""

    __tablename__ = "media"
    id: Mapped[str] = mapped_column(primary_key=True)
    product_id: Mapped[str] = mapped_column(ForeignKey("product.id"))
    kind: Mapped[str]
    alt: Mapped[str]


class Person(Base):
    """A person who signs in."""

    __tablename__ = "person"
    id: Mapped[str] = mapped_column(primary_key=True)
    email: Mapped[str]


class Entitlement(Base):
    """Who owns what."""

    __tablename__ = "entitlement"
    owner: Mapped[str] = mapped_column(primary_key=True)
    product_id: Mapped[str] = mapped_column(ForeignKey("product.id"), primary_key=True)
    granted_at: Mapped[int]
    source: Mapped[str]
    revoked_at: Mapped[int | None]


class Batch(Base):
    """Codes issued together."""

    __tablename__ = "code_batch"
    id: Mapped[str] = mapped_column(primary_key=True)
    products: Mapped[list[str]] = mapped_column(JsonText)
    max_uses: Mapped[int]
    valid_from: Mapped[int | None]
    expires_at: Mapped[int | None]
    status: Mapped[str]


class Code(Base):
    """A code, by its hash."""

    __tablename__ = "code"
    code_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    batch_id: Mapped[str] = mapped_column(ForeignKey("code_batch.id"))
    uses: Mapped[int]
    batch: Mapped[Batch] = relationship(lazy="raise")


class Redemption(Base):
    """A use of a code."""

    __tablename__ = "redemption"
    code_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    owner: Mapped[str] = mapped_column(String, primary_key=True)
    redeemed_at: Mapped[int]


class CardOut(BaseModel):
    """A product in a list."""

    model_config = ConfigDict(from_attributes=True)
    id: str
    slug: str
    title: str
    description: str | None
    kind: str
    platforms: list[str]


class PageOut(BaseModel):
    """A page of products."""

    items: list[CardOut]
    next_cursor: str | None


class ChannelOut(BaseModel):
    """The newest release of a channel."""

    channel: str
    version: str
    published_at: str


class DetailOut(CardOut):
    """A product's own page."""

    org: str
    access: str
    status: str
    channels: list[ChannelOut]
    media: list[str]
    tags: list[str]
    homepage: str | None
    license: str | None
    created_at: str
    updated_at: str


class RedeemIn(BaseModel):
    """A code to redeem."""

    code: str


class RedeemOut(BaseModel):
    """The redeemed products."""

    success: bool
    product_id: str
    products: list[str]
    already_owned: bool
