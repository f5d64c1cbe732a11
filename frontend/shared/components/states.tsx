// Placeholders for content that is loading, empty, or failed to load.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { RequestState } from "../request";
import type { Problem } from "../problem";
import { isServerUnreachable } from "../connectivity";
import { signInAddress } from "../sign_in_page";
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

/** The link to sign in again, if the error says that the session has ended. */
export function SignInAgain({ problem }: { problem: Problem }) {
  const address = signInAddress();
  return problem.status === 401 && address ? <a href={address}>{t("sign.in")}</a> : null;
}

/** An error with its remedy. If the server was unreachable, it retries as soon as the server can be reached. */
export function FailureNotice({ problem, onRetry }: { problem: Problem; onRetry?: () => void }) {
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
      <SignInAgain problem={problem} />
      {problem.retryAfterS !== null && <Wait seconds={problem.retryAfterS} {...(onRetry ? { onEnd: onRetry } : {})} />}
      {onRetry && <Button onClick={onRetry}>{t("again")}</Button>}
    </div>
  );
}

/** Counts down to the retry, and then calls `onEnd`. Screen readers read it once. */
function Wait({ seconds, onEnd }: { seconds: number; onEnd?: () => void }) {
  const [secondsLeft, setSecondsLeft] = useState(seconds);
  useEffect(() => {
    if (secondsLeft <= 0) {
      onEnd?.();
      return undefined;
    }
    const timer = setTimeout(() => setSecondsLeft(secondsLeft - 1), 1000);
    return () => clearTimeout(timer);
  }, [secondsLeft]);
  return (
    <p>
      <span class="hidden-text">{t("wait", { seconds })}</span>
      <span aria-hidden="true">{t("wait", { seconds: Math.max(0, secondsLeft) })}</span>
    </p>
  );
}

/** The result of a request, or a placeholder while it loads or if it failed. */
export function RequestResult<Value>({ request, children }: { request: RequestState<Value>; children: (value: Value) => ComponentChildren }) {
  if (request.state === "loading") {
    return <Loading />;
  }
  return request.state === "failed" ? <FailureNotice problem={request.problem} onRetry={request.reload} /> : <>{children(request.value)}</>;
}
