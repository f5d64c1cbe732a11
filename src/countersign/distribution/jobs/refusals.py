"""What is refused about jobs, and what a failed job says."""

from countersign.kernel.errors import NotFound, Refused


class UnknownJobType(Refused):
    """There is no such type of job, or nobody may ask for it from outside."""

    code = "unknown_job_type"
    title = "Unknown type of job"


class TooManyJobs(Refused):
    """Too many jobs of the organisation wait already."""

    status = 429
    code = "too_many_jobs"
    title = "Too many jobs"
    resolution = "Try again when some of the waiting jobs have ended, or cancel those that are not needed."


class TooManyFollowed(Refused):
    """The caller follows too many jobs at the same time."""

    status = 429
    code = "too_many_followed"
    title = "Too many jobs followed"
    resolution = "Close streams of events that are not needed, or look with GET /api/v1/jobs now and then."


class JobNotFound(NotFound):
    """There is no such job, or it is another organisation's."""

    resolution = "List your jobs with GET /api/v1/jobs."


class JobEnded(Refused):
    """The job has ended and cannot be cancelled any more."""

    status = 409
    code = "job_ended"
    title = "The job has ended"
    resolution = "Look at what came of it with GET /api/v1/jobs/{job_id}."


class JobCancelled(Refused):
    """What a job says that was cancelled."""

    status = 409
    code = "job_cancelled"
    title = "The job was cancelled"
    resolution = "Ask for it again with POST /api/v1/jobs."


class JobFailed(Refused):
    """What a job says that failed for no reason of its own, after all its attempts."""

    status = 500
    code = "job_failed"
    title = "The job failed"
    resolution = "Ask for it again with POST /api/v1/jobs; if it persists, look into the log of the workers."
