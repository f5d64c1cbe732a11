"""Metrics as Prometheus text: each family once, escaped labels, and a limited number of series for each family."""

import re
from collections.abc import Iterator

import pytest

from countersign.kernel import metrics
from countersign.kernel.metrics import FAMILIES, MAX_SERIES, Sample

LINE = re.compile(r'[a-z_]+(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (?:[0-9.e+-]+|\+Inf)')


@pytest.fixture(autouse=True)
def no_families() -> Iterator[None]:
    """Only the families that the test declares."""
    original_families = dict(FAMILIES)
    FAMILIES.clear()
    yield
    FAMILIES.clear()
    FAMILIES.update(original_families)


def page(*samples: Sample) -> list[str]:
    """Return the lines of this process's metrics."""
    return metrics.exposition([metrics.sample_lines([("worker", "0")])], samples).splitlines()


def test_a_counter_is_reported_with_its_meaning_and_labels() -> None:
    metrics.counter("seen_total", "What was seen.", "colour").labels("red").value += 2

    metric_lines = [
        "# HELP seen_total What was seen.",
        "# TYPE seen_total counter",
        'seen_total{worker="0",colour="red"} 2',
    ]
    assert page() == metric_lines


def test_values_of_one_metric_from_several_sources_are_listed_together() -> None:
    metrics.counter("a_total", "A.").labels().value += 1
    looked_up = metrics.gauge("b", "B.", "of")
    parts = [metrics.sample_lines([("worker", number)]) for number in ("0", "1")]

    lines = metrics.exposition(parts, [Sample(looked_up, 0.5, ("x",)), Sample(looked_up, 2, ("y",))]).splitlines()

    assert lines[:2] == ["# HELP a_total A.", "# TYPE a_total counter"]
    assert lines[2:4] == ['a_total{worker="0"} 1', 'a_total{worker="1"} 1']
    assert lines[4:] == ["# HELP b B.", "# TYPE b gauge", 'b{of="x"} 0.5', 'b{of="y"} 2']


def test_a_bucket_counts_every_request_up_to_its_bound() -> None:
    took = metrics.histogram("took_seconds", "How long it took.")
    for seconds in (0.0005, 0.001, 0.3, 60):
        took.labels().add(seconds)

    counts = [int(line.rpartition(" ")[2]) for line in page() if "_bucket" in line]

    assert counts == [2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4]
    assert page()[-2:] == ['took_seconds_sum{worker="0"} 60.3015', 'took_seconds_count{worker="0"} 4']


def test_every_label_value_is_escaped() -> None:
    odd_gauge = metrics.gauge("odd", "Odd.", "what")
    odd_gauge.labels('a"} 1\nforged{x="\\').value = 1

    (line,) = page()[2:]

    assert LINE.fullmatch(line)


def test_series_beyond_the_limit_of_a_family_are_counted_as_one_series() -> None:
    many_series = metrics.counter("many_total", "Many.", "which")
    for number in range(MAX_SERIES + 100):
        many_series.labels(str(number)).value += 1

    lines = page()[2:]

    assert len(lines) == MAX_SERIES + 1
    assert 'many_total{worker="0",which="other"} 100' in lines


def test_a_name_is_declared_once() -> None:
    metrics.gauge("once", "Once.")

    with pytest.raises(ValueError, match="declared twice"):
        metrics.counter("once", "Twice.")
