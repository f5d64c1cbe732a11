// The live log of an agent's calls, newest first. It pauses while the pointer is on it.
import { useState } from "preact/hooks";
import { Chip, type Tone } from "../../shared/components/chip";
import { Icon } from "../../shared/components/icon";
import { number, timeOf, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { RecordTitle } from "../approvals/record_title";
import { addressOf, mayRun, modelOf } from "../models";
import { Widget } from "../widgets/widget";
import type { Call, CallResult } from "./calls";
import { canReadAudit, knowsCalls } from "./calls";

const t = translator("agents");

const SHOWN = 8;
const TONES: Record<CallResult, Tone | undefined> = { read: undefined, done: "good", proposed: "warn", refused: "bad" };

interface Props {
  meta: Meta;
  token: string;
  calls: readonly Call[];
  isPaused: boolean;
  onPause: (isPaused: boolean) => void;
}

export function CallLog({ meta, token, calls, isPaused, onPause }: Props) {
  const [result, setResult] = useState<CallResult | "">("");
  const [most, setMost] = useState(SHOWN);
  const results = (["read", "done", "proposed", "refused"] as const).filter((result) => calls.some((call) => call.result === result));
  const shownCalls = calls.filter((call) => !result || call.result === result);
  const hasTimes = calls.some((call) => call.ms !== null);
  const link = canReadAudit(meta) ? { href: `/audit?token=${encodeURIComponent(token)}`, label: t("log.audit") } : undefined;
  const title = t(knowsCalls(meta) ? "log" : canReadAudit(meta) ? "log.changes" : "log.proposals");
  return (
    <Widget
      title={title}
      link={link}
      end={
        results.length > 1 && (
          <div class="log-filter">
            <div class="segments" role="group" aria-label={t("log.filter")}>
              {(["", ...results] as const).map((option) => (
                <button key={option} type="button" aria-pressed={result === option} onClick={() => setResult(option)}>
                  {option === "" ? t("log.all") : t(`result.${option}`)}
                </button>
              ))}
            </div>
          </div>
        )
      }
      beside={
        <span class="live-mark" data-state={isPaused ? "paused" : "live"} role="status">
          {t(isPaused ? "log.paused" : "log.live")}
        </span>
      }
    >
      <div onPointerEnter={() => onPause(true)} onPointerLeave={() => onPause(false)} onFocusIn={() => onPause(true)} onFocusOut={() => onPause(false)}>
        {shownCalls.length === 0 ? (
          <p class="widget-empty">{t("log.none")}</p>
        ) : (
          <div class="mini-wrap" tabIndex={0} role="group" aria-label={title}>
            <table class="mini log">
              <thead>
                <tr>
                  <th scope="col">{t("log.time")}</th>
                  <th scope="col">{t("log.tool")}</th>
                  <th scope="col" class="wide-only">
                    {t("log.on")}
                  </th>
                  <th scope="col">{t("log.result")}</th>
                  {hasTimes && (
                    <th scope="col" class="number wide-only">
                      {t("log.took")}
                    </th>
                  )}
                </tr>
              </thead>
              <tbody>
                {shownCalls.slice(0, most).map((call) => (
                  <tr key={call.id}>
                    <td class="quiet">{call.href ? <a href={call.href}>{timeOf(call.at)}</a> : timeOf(call.at)}</td>
                    <td>
                      <code>{call.tool}</code>
                    </td>
                    <td class="wide-only log-on">
                      <Target meta={meta} call={call} />
                    </td>
                    <td>
                      <Chip tone={TONES[call.result]}>{t(`result.${call.result}`)}</Chip>
                    </td>
                    {hasTimes && <td class="number quiet wide-only">{call.ms === null ? "" : t("log.ms", { n: number(Math.round(call.ms)) })}</td>}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
        {shownCalls.length > most && (
          <button type="button" class="widget-more" onClick={() => setMost(most + 50)}>
            <Icon name="chevron-down" size="s" />
            {t("log.more")}
          </button>
        )}
      </div>
    </Widget>
  );
}

function Target({ meta, call }: { meta: Meta; call: Call }) {
  const model = modelOf(meta, call.model);
  if (!model || !call.record) {
    return <span class="quiet">{model?.plural ?? "–"}</span>;
  }
  const title = <RecordTitle model={model} recordRef={{ model: call.model, id: call.record }} isBare />;
  return mayRun(model, "get") ? <a href={addressOf(call.model, call.record)}>{title}</a> : title;
}
