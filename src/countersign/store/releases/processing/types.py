"""The types of jobs on artifacts, for the app to hand to those who run jobs."""

from countersign.store.jobs.job_types import BACKGROUND, BUILD, AnyJobType, JobType
from countersign.store.releases.processing import artifacts, deltas
from countersign.store.releases.processing.deltas import make
from countersign.store.releases.processing.inspection import extract, verify
from countersign.store.releases.processing.process import process
from countersign.store.releases.processing.schemas import (
    DeltaPayload,
    ExtractPayload,
    ProcessPayload,
    VerifyPayload,
)

TYPES: tuple[AnyJobType, ...] = (
    JobType("build.process", ProcessPayload, process, artifacts.admit, BUILD),
    JobType("archive.extract", ExtractPayload, extract, artifacts.admit),
    JobType("artifact.verify", VerifyPayload, verify, artifacts.admit),
    JobType(deltas.DELTA_JOB, DeltaPayload, make, priority=BACKGROUND),
)
