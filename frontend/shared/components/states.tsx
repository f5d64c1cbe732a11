// What stands where something else should: it is on its way, there is none, or it was refused.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { RequestState } from "../request";
import type { Problem } from "../problem";
import { isServerUnreachable } from "../connectivity";
import { Button } from "./button";
import { translator } from "../i18n";

const t = translator("common");

export function Loading() {
  return (
    <p class="loading" role="status">
      <svg viewBox="0 0 64 24" aria-hidden="true">
        <path d="M4 18c8-2 12-15 17-14s-6 13 0 13 7-9 11-8 0 7 5 7 8-3 23-2" />
      </svg>
      {t("loading")}…
    </p>
  );
}

export function Empty({ title, children }: { title?: string; children?: ComponentChildren }) {
  return (
    <div class="state">
      <h2>{title ?? t("empty")}</h2>
      {children}
    </div>
  );
}

/** What was refused, and what to do about it. Where the server was not reached, it is tried again as soon as it is. */
export function Failed({ problem, onRetry }: { problem: Problem; onRetry?: () => void }) {
  const wasLost = useRef(false);
  useEffect(() => {
    if (problem.isOffline && wasLost.current && !isServerUnreachable.value) {
      onRetry?.();
    }
    wasLost.current = isServerUnreachable.value;
  }, [isServerUnreachable.value]);
  return (
    <div class="state failed" role="alert">
      <h2>{problem.title || t("failed")}</h2>
      <p>{problem.message}</p>
      {problem.resolution && <p>{problem.resolution}</p>}
      {problem.retryAfterS !== null && <Wait seconds={problem.retryAfterS} {...(onRetry ? { onEnd: onRetry } : {})} />}
      {onRetry && <Button onClick={onRetry}>{t("again")}</Button>}
    </div>
  );
}

/** Counts down until it may be tried again, which then happens by itself where it can. It is read aloud once. */
function Wait({ seconds, onEnd }: { seconds: number; onEnd?: () => void }) {
  const [left, setLeft] = useState(seconds);
  useEffect(() => {
    if (left <= 0) {
      onEnd?.();
      return undefined;
    }
    const timer = setTimeout(() => setLeft(left - 1), 1000);
    return () => clearTimeout(timer);
  }, [left]);
  return (
    <p>
      <span class="hidden-text">{t("wait", { seconds })}</span>
      <span aria-hidden="true">{t("wait", { seconds: Math.max(0, left) })}</span>
    </p>
  );
}

/** What was asked for when it is there, else why it is not. */
export function RequestResult<Value>({ of: request, children }: { of: RequestState<Value>; children: (value: Value) => ComponentChildren }) {
  if (request.state === "loading") {
    return <Loading />;
  }
  return request.state === "failed" ? <Failed problem={request.problem} onRetry={request.reload} /> : <>{children(request.value)}</>;
}
