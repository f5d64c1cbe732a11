// Where the person is signed in: each session with its device and last use, and buttons that end one or all others.
import { useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Icon } from "../../shared/components/icon";
import { RequestResult } from "../../shared/components/states";
import { date, dateTime, relativePast, translator } from "../../shared/i18n";
import { Problem } from "../../shared/problem";
import { useRequest } from "../../shared/request";
import { showToast } from "../../shared/toast";
import { api, type Schemas } from "../api";

const t = translator("store");

type Session = Schemas["OwnSession"];

function deviceName({ browser, system }: Session): string {
  return browser && system ? t("sessions.device", { browser, system }) : (browser ?? system ?? t("sessions.unknown"));
}

export function Sessions() {
  const request = useRequest(async (signal) => (await api.get("/api/v1/me/sessions", { signal })).value.items, [], { keepsPrevious: true });
  const title = useRef<HTMLHeadingElement>(null);
  const reload = (message: string) => {
    showToast(message);
    request.reload();
    // The button that was pressed disappears.
    title.current?.focus();
  };
  return (
    <section class="panel-box setting-panel" aria-labelledby="sessions">
      <h2 id="sessions" tabIndex={-1} ref={title}>
        {t("sessions")}
      </h2>
      <RequestResult request={request}>
        {(sessions) => (
          <>
            <ul class="setting-rows">
              {sessions.map((session) => (
                <SessionRow key={session.id} session={session} onEnded={() => reload(t("sessions.ended"))} />
              ))}
            </ul>
            {sessions.length > 1 ? <EndOthers onEnded={() => reload(t("sessions.others.ended"))} /> : <p class="quiet">{t("sessions.only")}</p>}
          </>
        )}
      </RequestResult>
    </section>
  );
}

function SessionRow({ session, onEnded }: { session: Session; onEnded: () => void }) {
  const seen = session.last_seen_at ?? session.created_at;
  const end = () => api.delete("/api/v1/me/sessions/{session_id}", { values: { session_id: session.id } });
  return (
    <li>
      <Icon name="monitor" />
      <span class="grow">
        {deviceName(session)}
        <small>
          <time dateTime={seen} title={dateTime(seen)}>
            {t("sessions.seen", { when: relativePast(seen) })}
          </time>
          {" · "}
          {t("sessions.since", { day: date(session.created_at) })}
        </small>
      </span>
      {session.is_current ? (
        <Chip tone="good">{t("sessions.here")}</Chip>
      ) : (
        <EndButton end={end} text={t("sessions.end")} ariaLabel={t("sessions.end.of", { device: deviceName(session) })} onEnded={onEnded} />
      )}
    </li>
  );
}

function EndOthers({ onEnded }: { onEnded: () => void }) {
  return (
    <div class="row">
      <EndButton end={() => api.delete("/api/v1/me/sessions")} text={t("sessions.end.others")} onEnded={onEnded} />
    </div>
  );
}

interface EndButtonProps {
  end: () => Promise<unknown>;
  text: string;
  ariaLabel?: string;
  onEnded: () => void;
}

function EndButton({ end, text, ariaLabel, onEnded }: EndButtonProps) {
  const [isBusy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    try {
      await end();
      onEnded();
    } catch (error) {
      const problem = Problem.from(error);
      showToast(problem.message);
      // The session may have ended by itself in the meantime.
      if (problem.status === 404) {
        onEnded();
      }
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button tight busy={isBusy} {...(ariaLabel ? { "aria-label": ariaLabel } : {})} onClick={() => void press()}>
      {text}
    </Button>
  );
}
