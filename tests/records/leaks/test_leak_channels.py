"""The fifty leak channels: each check passes on both databases, and fails if its defence is disabled."""

import pytest

from tests.records.leaks import exits, queries, records
from tests.records.leaks.channel import CHANNELS, Channel
from tests.records.office import Office

ALL = [CHANNELS[number] for number in sorted(CHANNELS)]
MODULES = (exits, queries, records)


@pytest.mark.parametrize("channel", ALL, ids=lambda channel: channel.name)
async def test_the_channel_is_closed(office: Office, channel: Channel) -> None:
    await channel.check(office)


@pytest.mark.parametrize("office_settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize("channel", ALL, ids=lambda channel: channel.name)
async def test_the_check_fails_without_the_defence(
    office: Office, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel.disable_defence(monkeypatch)

    with pytest.raises((AssertionError, KeyError)):
        await channel.check(office)


def test_each_of_the_fifty_leaks_has_a_check() -> None:
    assert sorted(CHANNELS) == list(range(1, 51))
    channel_names = [name for module in MODULES for name in vars(module) if name[:1] == "l" and name[1:].isdigit()]
    assert sorted(channel_names) == [f"l{number:02d}" for number in range(1, 51)]
