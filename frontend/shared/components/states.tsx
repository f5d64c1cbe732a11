// What stands where something else should: it is on its way, there is none, or it was refused.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { RequestState } from "../request";
import type { Problem } from "../problem";
import { isServerUnreachable } from "../connectivity";
import { Button } from "./button";
import { Icon, type IconName } from "./icon";
import { translator } from "../i18n";

const t = translator("common");

export function Loading() {
  return (
    <p class="loading" role="status">
      <Icon name="refresh-cw" />
      {t("loading")}…
    </p>
  );
}

export function Empty({ title, icon = "inbox", children }: { title?: string; icon?: IconName; children?: ComponentChildren }) {
  return (
    <div class="state">
      <Icon name={icon} />
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
      <Icon name={problem.isOffline ? "wifi-off" : "circle-alert"} />
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
