// The sessions of the person that have not ended, each with a button that ends it.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { RequestResult } from "../../shared/components/states";
import { useRequest } from "../../shared/request";
import { date, dateTime, relativePast, translator } from "../../shared/i18n";
import { Problem } from "../../shared/problem";
import { showToast } from "../../shared/toast";
import { type Meta, type Row, run } from "../api";
import { loadCurrentUser } from "../current_user";
import { mayRun, modelOf } from "../models";
import { Widget } from "../widgets/widget";

const t = translator("account");

const MAX_SESSIONS = 50;

interface Session extends Row {
  started_at: string;
  expires_at: string;
}

export function Sessions({ meta }: { meta: Meta }) {
  const model = modelOf(meta, "session");
  const input = { filter: [{ field: "ended_at", op: "is_null", value: true }], order: [{ field: "started_at", dir: "desc" }], limit: MAX_SESSIONS };
  const request = useRequest(async (signal) => (model ? (await run<Session[]>("session", "list", input, signal)).value : []), [model], { keepsPrevious: true });
  if (!model || !mayRun(model, "list")) {
    return null;
  }
  return (
    <Widget title={t("sessions")}>
      <p class="account-note">{t("sessions.text")}</p>
      <RequestResult request={request}>
        {(sessions) => (
          <ul class="account-rows">
            {sessions.filter(isRunning).map((openSession) => (
              <SessionRow key={openSession.id} session={openSession} canEnd={mayRun(model, "revoke")} onEnded={request.reload} />
            ))}
          </ul>
        )}
      </RequestResult>
    </Widget>
  );
}

function isRunning({ expires_at }: Session): boolean {
  return Date.parse(expires_at) > Date.now();
}

function SessionRow({ session, canEnd, onEnded }: { session: Session; canEnd: boolean; onEnded: () => void }) {
  const [isBusy, setBusy] = useState(false);
  const end = async () => {
    setBusy(true);
    try {
      await run("session", "revoke", { id: session.id });
      showToast(t("sessions.ended"));
      // If the ended session was the session of this browser, the person has to sign in again.
      await loadCurrentUser();
      onEnded();
    } catch (error) {
      showToast(Problem.from(error).message);
      setBusy(false);
    }
  };
  const started = relativePast(session.started_at);
  return (
    <li>
      <Icon name="monitor" />
      <span class="grow">
        <time dateTime={session.started_at} title={dateTime(session.started_at)}>
          {t("sessions.started", { when: started })}
        </time>
        <small class="quiet">{t("sessions.until", { day: date(session.expires_at) })}</small>
      </span>
      {canEnd && (
        <Button tight busy={isBusy} aria-label={t("sessions.end.of", { when: started })} onClick={() => void end()}>
          {t("sessions.end")}
        </Button>
      )}
    </li>
  );
}
