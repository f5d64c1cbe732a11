// Verifies the whole audit log, and shows whether it was altered.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Failed, Loading } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { Problem } from "../../shared/problem";
import { dateTime, number, translator } from "../../shared/i18n";
import { run } from "../api";

const t = translator("audit");

interface Fault {
  lane: number | null;
  number: number | null;
  id: string | null;
  what: "changed" | "missing" | "added" | "cut" | "head";
}

interface Checked {
  is_intact: boolean;
  checked_at: string;
  entries: number | null;
  faults: Fault[] | null;
}

export function IntegrityCheck() {
  const [found, setFound] = useState<Checked | Problem | "asked" | null>(null);
  const ask = async () => {
    setFound("asked");
    try {
      setFound((await run<Checked>("audit_entry", "verify", {})).value);
    } catch (error) {
      setFound(Problem.from(error));
    }
  };
  return (
    <section class="panel-box stack" aria-labelledby="check">
      <div class="row between">
        <h2 id="check">{t("check")}</h2>
        <Button busy={found === "asked"} onClick={() => void ask()}>
          {t("check.run")}
        </Button>
      </div>
      <p class="small quiet">{t("check.text")}</p>
      {found === "asked" && <Loading />}
      {found instanceof Problem && <Failed problem={found} onRetry={() => void ask()} />}
      {found !== null && found !== "asked" && !(found instanceof Problem) && <Result checked={found} />}
    </section>
  );
}

function Result({ checked }: { checked: Checked }) {
  const { is_intact, checked_at, entries, faults } = checked;
  const read = entries === null ? "" : t("check.entries", { n: number(entries) });
  return (
    <>
      <p class={is_intact ? "notice" : "notice bad"} role={is_intact ? "status" : "alert"}>
        <strong>{t(is_intact ? "check.intact" : "check.broken")}</strong> {read}{" "}
        <time dateTime={checked_at}>{t("check.at", { when: dateTime(checked_at) })}</time>
      </p>
      {!is_intact && <p>{t("check.keep")}</p>}
      {faults !== null && faults.length > 0 && (
        <Table
          caption={t("check.faults")}
          rows={faults}
          keyOf={(each) => String(each.lane)}
          columns={[
            { name: "what", label: t("check.what"), cell: (each) => t(`fault.${each.what}`) },
            { name: "lane", label: t("lane"), cell: (each) => (each.lane === null ? "–" : number(each.lane)), isNumber: true },
            { name: "number", label: t("number"), cell: (each) => (each.number === null ? "–" : number(each.number)), isNumber: true },
            { name: "id", label: t("entry"), cell: ({ id }) => (id ? <a href={`/audit/${encodeURIComponent(id)}`}>{id}</a> : "–") },
          ]}
        />
      )}
    </>
  );
}
