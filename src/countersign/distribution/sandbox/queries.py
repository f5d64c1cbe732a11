"""SQL of what the sandbox asks of a data set."""

from countersign.kernel.database.port import Reader

HAS_JOBS = "SELECT 1 FROM job WHERE status IN ('queued', 'running') LIMIT 1"


async def has_jobs(reader: Reader) -> bool:
    """Whether any job waits or is worked on."""
    return await reader.fetch_one(HAS_JOBS) is not None
