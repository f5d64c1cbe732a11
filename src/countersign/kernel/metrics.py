"""Metrics of the running process, in the Prometheus text format (exposition format 0.0.4).

A family is declared once, in the module that counts, and its declaration adds it to `FAMILIES`. Code chooses the few
label values (a route's template, a class of statuses); they never come from callers. A family has at most MAX_SERIES
series, and further series are counted as `other`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

Labels: TypeAlias = tuple[str, ...]

MAX_SERIES = 5_000
OTHER = "other"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""The upper bounds of a histogram's buckets, in seconds. The last bucket has no upper bound."""


class Family:
    """A metric family: its type, help text (with the unit), and label names."""

    def __init__(
        self, kind: Literal["counter", "gauge", "histogram"], name: str, help_text: str, label_names: Labels
    ) -> None:
        if name in FAMILIES:
            raise ValueError(f"the metric {name} is declared twice")
        self.kind = kind
        self.name = name
        self.help_text = help_text
        self.label_names = label_names
        FAMILIES[name] = self

    def lines(self, extra_labels: Sequence[tuple[str, str]]) -> list[str]:
        """Return the sample lines of this process. In each line, the labels of `extra_labels` precede the sample's own
        labels."""
        return []

    def sample(self, value: float, *values: str, extra_labels: Sequence[tuple[str, str]] = ()) -> str:
        """Return one sample line."""
        return f"{self.name}{self._label_set(values, extra_labels)} {_number(value)}"

    def _label_set(self, values: Labels, extra_labels: Sequence[tuple[str, str]], suffix: str = "") -> str:
        pairs = (*extra_labels, *zip(self.label_names, values, strict=True))
        inner = ",".join([*(f'{name}="{_escaped(value)}"' for name, value in pairs), *([suffix] if suffix else [])])
        return f"{{{inner}}}" if inner else ""


class Series:
    """One counter or gauge value."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class CounterOrGauge(Family):
    """A family of counters or gauges."""

    def __init__(self, kind: Literal["counter", "gauge"], name: str, help_text: str, label_names: Labels) -> None:
        super().__init__(kind, name, help_text, label_names)
        self._series: dict[Labels, Series] = {}

    def labels(self, *values: str) -> Series:
        """Return the series with these label values. Callers that count often should keep the returned series."""
        series = self._series.get(values)
        if series is None:
            label_values = values if len(self._series) < MAX_SERIES else (OTHER,) * len(values)
            series = self._series.setdefault(label_values, Series())
        return series

    def lines(self, extra_labels: Sequence[tuple[str, str]]) -> list[str]:
        """See Family."""
        return [
            self.sample(series.value, *values, extra_labels=extra_labels) for values, series in self._series.items()
        ]


class Durations:
    """A histogram of durations: a count per bucket, and the sum in seconds."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(SECONDS, seconds)] += 1
        self.sum_s += seconds


class Histogram(Family):
    """A family of histograms."""

    def __init__(self, name: str, help_text: str, label_names: Labels) -> None:
        super().__init__("histogram", name, help_text, label_names)
        self._series: dict[Labels, Durations] = {}

    def labels(self, *values: str) -> Durations:
        """Return the series with these label values. Callers that count often should keep the returned series."""
        series = self._series.get(values)
        if series is None:
            label_values = values if len(self._series) < MAX_SERIES else (OTHER,) * len(values)
            series = self._series.setdefault(label_values, Durations())
        return series

    def lines(self, extra_labels: Sequence[tuple[str, str]]) -> list[str]:
        """See Family."""
        return [
            line for values, series in self._series.items() for line in self._series_lines(values, series, extra_labels)
        ]

    def _series_lines(self, values: Labels, durations: Durations, extra_labels: Sequence[tuple[str, str]]) -> list[str]:
        lines: list[str] = []
        total = 0
        for upper_bound, count in zip((*map(_number, SECONDS), "+Inf"), durations.counts, strict=True):
            total += count
            bucket = self._label_set(values, extra_labels, f'le="{upper_bound}"')
            lines.append(f"{self.name}_bucket{bucket} {total}")
        label_set = self._label_set(values, extra_labels)
        return [
            *lines,
            f"{self.name}_sum{label_set} {_number(durations.sum_s)}",
            f"{self.name}_count{label_set} {total}",
        ]


FAMILIES: dict[str, Family] = {}
"""Every family by its name."""


class Sample(NamedTuple):
    """A value that is read on demand, rather than counted."""

    family: Family
    value: float
    labels: Labels = ()


def counter(name: str, help_text: str, *label_names: str) -> CounterOrGauge:
    """Declare a counter."""
    return CounterOrGauge("counter", name, help_text, label_names)


def gauge(name: str, help_text: str, *label_names: str) -> CounterOrGauge:
    """Declare a gauge."""
    return CounterOrGauge("gauge", name, help_text, label_names)


def histogram(name: str, help_text: str, *label_names: str) -> Histogram:
    """Declare a histogram of durations in seconds."""
    return Histogram(name, help_text, label_names)


def sample_lines(extra_labels: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Map the name of each family to the sample lines of this process, as one text."""
    text_by_family = {name: "\n".join(family.lines(extra_labels)) for name, family in FAMILIES.items()}
    return {name: lines for name, lines in text_by_family.items() if lines}


def exposition(samples_by_worker: Iterable[Mapping[str, str]], samples: Iterable[Sample]) -> str:
    """Combine the lines of several processes and values read on demand: each family once, with its samples."""
    lines: dict[str, list[str]] = {}
    for worker_samples in samples_by_worker:
        for name, block in worker_samples.items():
            lines.setdefault(name, []).append(block)
    for sample in samples:
        lines.setdefault(sample.family.name, []).append(sample.family.sample(sample.value, *sample.labels))
    page: list[str] = []
    for name, family in sorted(FAMILIES.items()):
        if name in lines:
            page += (f"# HELP {name} {family.help_text}", f"# TYPE {name} {family.kind}", *lines[name])
    return "\n".join(page) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
