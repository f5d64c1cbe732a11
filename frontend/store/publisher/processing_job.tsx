// The processing of an uploaded file by the store: its progress, and a restart if it failed.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Failed } from "../../shared/components/states";
import { send } from "../../shared/client";
import { Problem } from "../../shared/problem";
import { stream, type Stream } from "../../shared/stream";
import { number, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { idempotencyHeader } from "./form";

const tCommon = translator("common");
const t = translator("publisher");

type Status = Schemas["JobStatus"];

export function ProcessingJob({ artifact }: { artifact: string }) {
  const [status, setStatus] = useState<Status | null>(null);
  const [lines, setLines] = useState<readonly string[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [round, setRound] = useState(0);
  const followed = useRef<Stream | null>(null);
  useEffect(() => {
    let isGone = false;
    const told = (next: Status) => {
      setStatus(next);
      const at = new Date().toLocaleTimeString();
      setLines((had) => [...had, `${at} ${line(next)}`]);
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
          const next = JSON.parse(event.data) as Status;
          if (event.name === "done") {
            setStatus(next);
            followed.current?.close();
          } else {
            told(next);
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
  const restart = () => setRound(round + 1);
  return (
    <section class="stack" aria-label={t("job")}>
      <p class="row" role="status">
        {t("job")}
        {status && (
          <Chip tone={status.status === "completed" ? "good" : status.status === "failed" ? "bad" : undefined}>
            {t(`job.${status.status}`)}
          </Chip>
        )}
        {isLost && tCommon("reconnecting")}
      </p>
      {status && status.status !== "completed" && <progress max={1} value={status.progress ?? 0} aria-label={t("job")} />}
      <ol class="log" tabIndex={0} aria-label={t("job.log")}>
        {lines.map((each, place) => (
          <li key={place}>{each}</li>
        ))}
      </ol>
      {problem && <Failed problem={problem} onRetry={restart} />}
      {status?.status === "failed" && (
        <>
          <Failed problem={new Problem(0, status.error ?? {})} />
          <div>
            <Button onClick={restart}>{t("job.again")}</Button>
          </div>
        </>
      )}
    </section>
  );
}

function line(status: Status): string {
  const share = status.progress === undefined ? "" : ` ${number(Math.round(status.progress * 100))} %`;
  return `${t(`job.${status.status}`)}${share}${status.attempts > 1 ? ` (${status.attempts})` : ""}`;
}
