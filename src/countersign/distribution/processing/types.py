"""The types of jobs on artifacts, for the app to hand to those who run jobs."""

from countersign.distribution.jobs.kinds import BACKGROUND, BUILD, AnyJobType, JobType
from countersign.distribution.processing import artifacts, pairs
from countersign.distribution.processing.delta import make
from countersign.distribution.processing.listing import extract
from countersign.distribution.processing.process import process
from countersign.distribution.processing.schemas import DeltaPayload, ExtractPayload, ProcessPayload, VerifyPayload
from countersign.distribution.processing.verify import verify

TYPES: tuple[AnyJobType, ...] = (
    JobType("build.process", ProcessPayload, process, artifacts.admit, BUILD),
    JobType("archive.extract", ExtractPayload, extract, artifacts.admit),
    JobType("artifact.verify", VerifyPayload, verify, artifacts.admit),
    JobType(pairs.DELTA_JOB, DeltaPayload, make, priority=BACKGROUND),
)
