"""URLs that may contain a password: valid ones are parsed, and an invalid password is refused and not shown."""

import pytest

from countersign.kernel import connection_urls

GOOD = [
    "postgresql://u:p@db.example.com/shop",
    "postgres://u:a%2Fb%40c@[::1]:5432/shop?sslmode=require",
    "postgresql://u:p@one:5432,two:5433/shop?target_session_attrs=read-write",
    "postgresql:///shop?host=/run/postgresql&user=me@here",
    "postgresql://u@%2Frun%2Fpostgresql:5432/shop",
    "postgresql://localhost",
]
# The text that remains of a password with an unencoded character.
CUT = [
    "abc/Tail", "5432/Tail", "99999/Tail", "abc?Tail", "5432?Tail", "abc#Tail", "5432#Tail", "abc@Tail", "[abcTail",
    "abc%Tail",
]  # fmt: skip


@pytest.mark.parametrize("url", GOOD)
def test_an_address_that_is_well_written_is_read(url: str) -> None:
    connection_urls.require_postgres(url)


def test_an_address_is_shown_without_its_password() -> None:
    assert connection_urls.describe_postgres("postgresql://u:p@db/shop") == "u@db:5432/shop"
    assert connection_urls.describe_postgres("postgresql://u:p@one:1,two:2/shop") == "u@one:1,two:2/shop"
    assert connection_urls.postgres_location("postgresql://u:p@one:1,two:2/shop") == "one:1,two:2/shop"


@pytest.mark.parametrize("password", CUT)
def test_a_password_that_is_cut_is_refused_and_not_quoted(password: str) -> None:
    with pytest.raises(ValueError, match=r"^COUNTERSIGN_DATABASE_URL .*percent-encode") as refusal:
        connection_urls.require_postgres(f"postgresql://u:{password}@db.example.com/shop")

    error_text = str(refusal.value)
    assert error_text == str(connection_urls.unreadable_error(connection_urls.DATABASE_SETTING))
    # A traceback must not show the message of the parser either.
    assert refusal.value.__cause__ is refusal.value.__context__ is None


@pytest.mark.parametrize("query", ["port=abc", "port=99999", "host=db:abc", "nothing"])
def test_a_query_that_the_driver_would_quote_is_refused(query: str) -> None:
    with pytest.raises(ValueError, match="COUNTERSIGN_DATABASE_URL"):
        connection_urls.require_postgres(f"postgresql://u:p@db/shop?{query}")
