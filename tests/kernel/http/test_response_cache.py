"""The cache of encoded responses: it never returns older versions, and never exceeds its limit."""

from hypothesis import given
from hypothesis import strategies as st

from countersign.kernel.http.response_cache import MAX_ASKED, CachedResponse, ResponseCache


def page(versions: tuple[int, ...], size: int = 100) -> CachedResponse:
    return CachedResponse(versions, b"x" * size, '"t"', ())


def test_a_target_is_a_repeat_from_its_second_time_on() -> None:
    pages = ResponseCache(1 << 20)

    assert [pages.is_repeat((b"/a", b"")) for _ in range(3)] == [False, True, True]
    assert not pages.is_repeat((b"/a", b"limit=1"))


def test_a_cached_page_is_a_repeat_after_many_other_requests() -> None:
    pages = ResponseCache(1 << 20)
    pages.put((b"/a", b""), page((1,)))
    pages.is_repeat((b"/b", b""))
    for number in range(MAX_ASKED):
        pages.is_repeat((b"/%d" % number, b""))

    assert pages.is_repeat((b"/a", b""))
    assert not pages.is_repeat((b"/b", b""))


def test_a_cached_page_is_returned_only_for_its_own_versions() -> None:
    pages = ResponseCache(1 << 20)
    pages.put((b"/a", b""), page((1, 1)))

    assert pages.get((b"/a", b""), (1, 1)) is not None
    assert pages.get((b"/a", b""), (2, 1)) is None
    assert pages.get((b"/a", b""), (1, 1)) is None


def test_the_least_recently_used_page_makes_room() -> None:
    pages = ResponseCache(20_000)
    for number in range(20):
        pages.put((b"/%d" % number, b""), page((1,), 500))
        pages.get((b"/0", b""), (1,))

    assert pages.get((b"/0", b""), (1,)) is not None
    assert pages.get((b"/1", b""), (1,)) is None
    assert pages.get((b"/19", b""), (1,)) is not None


def test_a_huge_answer_does_not_empty_the_room() -> None:
    pages = ResponseCache(20_000)
    pages.put((b"/small", b""), page((1,)))
    pages.put((b"/huge", b""), page((1,), 19_000))

    assert pages.get((b"/huge", b""), (1,)) is None
    assert pages.get((b"/small", b""), (1,)) is not None


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 1000), st.integers(1, 3)), max_size=200))
def test_the_room_is_never_exceeded(puts: list[tuple[int, int, int]]) -> None:
    pages = ResponseCache(16_000)
    pages_by_key: dict[bytes, CachedResponse] = {}
    for name, size, version in puts:
        pages_by_key[b"/%d" % name] = page((version,), size)
        pages.put((b"/%d" % name, b""), pages_by_key[b"/%d" % name])

    cached_pages = [value for path, value in pages_by_key.items() if pages.get((path, b""), value.versions) is value]
    assert sum(len(cached_page.body) for cached_page in cached_pages) <= 16_000
