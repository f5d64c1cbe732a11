// Verifies the whole audit log, and shows whether it was altered.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { FailureNotice } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { Problem } from "../../shared/problem";
import { dateTime, number, timeOf, translator } from "../../shared/i18n";
import { run } from "../api";

const t = translator("audit");

interface Fault {
  lane: number | null;
  number: number | null;
  id: string | null;
  what: "changed" | "missing" | "added" | "cut" | "head";
}

interface CheckResult {
  is_intact: boolean;
  checked_at: string;
  entries: number | null;
  faults: Fault[] | null;
}

/** The button in the head of the page, and its result: a chip if the log is intact, or else a message below the head. */
export function useIntegrityCheck() {
  const [checkState, setCheckState] = useState<CheckResult | Problem | "asked" | null>(null);
  const ask = async () => {
    setCheckState("asked");
    try {
      setCheckState((await run<CheckResult>("audit_entry", "verify", {})).value);
    } catch (error) {
      setCheckState(Problem.from(error));
    }
  };
  const isChecked = checkState !== null && checkState !== "asked" && !(checkState instanceof Problem);
  const chip = (
    <>
      <span role="status">
        {isChecked && checkState.is_intact && (
          <span class="chip good" title={saidOf(checkState)}>
            <Icon name="shield-check" size="s" />
            {t("check.chip", { time: timeOf(checkState.checked_at) })}
            <span class="hidden-text">{saidOf(checkState)}</span>
          </span>
        )}
        {isChecked && !checkState.is_intact && (
          <span class="chip bad">
            <Icon name="triangle-alert" size="s" />
            {t("check.bad")}
          </span>
        )}
      </span>
      <Button tight busy={checkState === "asked"} title={t("check.text")} onClick={() => void ask()}>
        {t("check.run")}
      </Button>
    </>
  );
  const details = checkState instanceof Problem ? <FailureNotice problem={checkState} onRetry={() => void ask()} /> : isChecked && !checkState.is_intact ? <TamperedEntries checked={checkState} /> : null;
  return { chip, details };
}

function saidOf({ entries }: CheckResult): string {
  return `${t("check.intact")} ${entries === null ? "" : t("check.entries", { n: number(entries) })}`;
}

function TamperedEntries({ checked }: { checked: CheckResult }) {
  const { checked_at, faults } = checked;
  return (
    <div class="audit-fault">
      <p class="notice bad" role="alert">
        <strong>{t("check.broken")}</strong> <time dateTime={checked_at}>{t("check.at", { when: dateTime(checked_at) })}</time>
      </p>
      <p>{t("check.keep")}</p>
      {faults !== null && faults.length > 0 && (
        <Table
          caption={t("check.faults")}
          rows={faults}
          keyOf={(fault) => String(fault.lane)}
          columns={[
            { name: "what", label: t("check.what"), cell: (fault) => t(`fault.${fault.what}`) },
            { name: "lane", label: t("lane"), cell: (fault) => (fault.lane === null ? "–" : number(fault.lane)), isNumber: true },
            { name: "number", label: t("number"), cell: (fault) => (fault.number === null ? "–" : number(fault.number)), isNumber: true },
            { name: "id", label: t("entry"), cell: ({ id }) => (id ? <a href={`/audit/${encodeURIComponent(id)}`}>{id}</a> : "–") },
          ]}
        />
      )}
    </div>
  );
}
