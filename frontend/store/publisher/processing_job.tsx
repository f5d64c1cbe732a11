// The checks of an uploaded file by the store: their progress, their log, and the remedy for a refused file.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { FailureNotice } from "../../shared/components/states";
import { send } from "../../shared/client";
import { Problem } from "../../shared/problem";
import { stream, type Stream } from "../../shared/stream";
import { number, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { idempotencyHeader } from "./form";

const tCommon = translator("common");
const t = translator("publisher");

type Job = Schemas["JobStatus"];
export type JobState = Job["status"];
/** The states of checks by artifact. */
export type JobStates = Readonly<Record<string, JobState>>;

interface Props {
  artifact: string;
  name: string;
  onState: (state: JobState) => void;
  /** Goes to the step in which a corrected file is uploaded. */
  onReplace: () => void;
}

export function ProcessingJob({ artifact, name, onState, onReplace }: Props) {
  const [job, setJob] = useState<Job | null>(null);
  const [lines, setLines] = useState<readonly string[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [restartCount, setRestartCount] = useState(0);
  const eventStream = useRef<Stream | null>(null);
  useEffect(() => {
    let isCancelled = false;
    const show = (newJob: Job) => {
      setJob(newJob);
      onState(newJob.status);
    };
    const begin = async () => {
      const body = { type: "build.process", payload: { artifact_id: artifact } };
      const headers = { ...idempotencyHeader(), Prefer: "respond-async" };
      const createdJob = (await (await send("POST", "/api/v1/jobs", { body, headers })).json()) as Job;
      if (isCancelled) {
        return;
      }
      eventStream.current = stream(
        `/api/v1/jobs/${createdJob.job_id}/events`,
        (event) => {
          const newJob = JSON.parse(event.data) as Job;
          show(newJob);
          if (event.name === "done") {
            eventStream.current?.close();
          } else {
            setLines((previousLines) => [...previousLines, `${new Date().toLocaleTimeString()} ${logLine(newJob)}`]);
          }
        },
        setProblem,
      );
    };
    setProblem(null);
    begin().catch((error: unknown) => setProblem(Problem.from(error)));
    return () => {
      isCancelled = true;
      eventStream.current?.close();
    };
  }, [restartCount]);
  const isReconnecting = eventStream.current?.state.value === "reconnecting";
  const isFailed = job?.status === "failed";
  const restart = () => setRestartCount(restartCount + 1);
  return (
    <section class="stack" aria-label={name}>
      <p class="row between" role="status">
        <strong class="whole">{name}</strong>
        {job && <Chip tone={job.status === "completed" ? "good" : isFailed ? "bad" : undefined}>{t(`checks.${job.status}`)}</Chip>}
        {isReconnecting && tCommon("reconnecting")}
      </p>
      {job && job.status !== "completed" && !isFailed && <progress max={1} value={job.progress ?? 0} aria-label={t("job")} />}
      {problem && <FailureNotice problem={problem} onRetry={restart} />}
      {isFailed && (
        <>
          <FailureNotice problem={new Problem(0, job.error ?? {})} />
          <p>{t("checks.remedy")}</p>
          <div class="row">
            <Button onClick={onReplace}>{t("checks.replace")}</Button>
            <Button variant="plain" onClick={restart}>
              {t("job.again")}
            </Button>
          </div>
        </>
      )}
      <details class="disclosure">
        <summary>{t("job.log")}</summary>
        <ol class="log" tabIndex={0} aria-label={t("job.log")}>
          {lines.map((line, index) => (
            <li key={index}>{line}</li>
          ))}
        </ol>
      </details>
    </section>
  );
}

function logLine(job: Job): string {
  const percentage = job.progress === undefined ? "" : ` ${number(Math.round(job.progress * 100))} %`;
  return `${t(`job.${job.status}`)}${percentage}${job.attempts > 1 ? ` (${job.attempts})` : ""}`;
}
