"""The address determines the engine."""

from pathlib import Path

import pytest

from countersign.kernel.database.open import open_database
from countersign.kernel.errors import Unavailable


async def test_the_address_chooses_the_engine(database_url: str) -> None:
    database = await open_database(database_url, schema="shop")

    assert database.dialect == ("sqlite" if database_url.startswith("sqlite") else "postgres")
    await database.close()


async def test_another_address_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="sqlite:/// or postgresql://"):
        await open_database("mysql://localhost/x", schema="shop")


async def test_a_file_that_is_not_a_database_is_refused_without_its_path(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"this is no database, whatever it is called" * 100)

    for name in ("a.db", "missing/a.db"):
        with pytest.raises(Unavailable) as refusal:
            await open_database(f"sqlite:///{tmp_path}/{name}", schema="shop")
        assert str(tmp_path) not in refusal.value.detail
