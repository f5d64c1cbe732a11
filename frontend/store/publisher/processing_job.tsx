// The checks of an uploaded file by the store: their progress, their log, and what to do about a file that is refused.
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

type Status = Schemas["JobStatus"];
export type JobState = Status["status"];
/** The states of checks by artifact. */
export type JobStates = Readonly<Record<string, JobState>>;

interface Props {
  artifact: string;
  name: string;
  onState: (state: JobState) => void;
  /** Leads to where a corrected file is uploaded. */
  onReplace: () => void;
}

export function ProcessingJob({ artifact, name, onState, onReplace }: Props) {
  const [status, setStatus] = useState<Status | null>(null);
  const [lines, setLines] = useState<readonly string[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [round, setRound] = useState(0);
  const followed = useRef<Stream | null>(null);
  useEffect(() => {
    let isGone = false;
    const show = (newStatus: Status) => {
      setStatus(newStatus);
      onState(newStatus.status);
    };
    const begin = async () => {
      const body = { type: "build.process", payload: { artifact_id: artifact } };
      const headers = { ...idempotencyHeader(), Prefer: "respond-async" };
      const value = (await (await send("POST", "/api/v1/jobs", { body, headers })).json()) as Status;
      if (isGone) {
        return;
      }
      followed.current = stream(
        `/api/v1/jobs/${value.job_id}/events`,
        (event) => {
          const newStatus = JSON.parse(event.data) as Status;
          show(newStatus);
          if (event.name === "done") {
            followed.current?.close();
          } else {
            setLines((had) => [...had, `${new Date().toLocaleTimeString()} ${line(newStatus)}`]);
          }
        },
        setProblem,
      );
    };
    setProblem(null);
    begin().catch((error: unknown) => setProblem(Problem.from(error)));
    return () => {
      isGone = true;
      followed.current?.close();
    };
  }, [round]);
  const isLost = followed.current?.state.value === "reconnecting";
  const isFailed = status?.status === "failed";
  const restart = () => setRound(round + 1);
  return (
    <section class="stack" aria-label={name}>
      <p class="row between" role="status">
        <strong class="whole">{name}</strong>
        {status && <Chip tone={status.status === "completed" ? "good" : isFailed ? "bad" : undefined}>{t(`checks.${status.status}`)}</Chip>}
        {isLost && tCommon("reconnecting")}
      </p>
      {status && status.status !== "completed" && !isFailed && <progress max={1} value={status.progress ?? 0} aria-label={t("job")} />}
      {problem && <FailureNotice problem={problem} onRetry={restart} />}
      {isFailed && (
        <>
          <FailureNotice problem={new Problem(0, status.error ?? {})} />
          <p>{t("checks.remedy")}</p>
          <div class="row">
            <Button onClick={onReplace}>{t("checks.replace")}</Button>
            <Button look="plain" onClick={restart}>
              {t("job.again")}
            </Button>
          </div>
        </>
      )}
      <details class="downloads">
        <summary>{t("job.log")}</summary>
        <ol class="log" tabIndex={0} aria-label={t("job.log")}>
          {lines.map((statusLine, index) => (
            <li key={index}>{statusLine}</li>
          ))}
        </ol>
      </details>
    </section>
  );
}

function line(status: Status): string {
  const share = status.progress === undefined ? "" : ` ${number(Math.round(status.progress * 100))} %`;
  return `${t(`job.${status.status}`)}${share}${status.attempts > 1 ? ` (${status.attempts})` : ""}`;
}
