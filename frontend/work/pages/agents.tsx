// Agents' tokens: those there are, a new one with exactly what it may do, and the end of one.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Dialog } from "../../shared/components/dialog";
import { Faults, SelectField, TextField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { RequestResult, Empty } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { showToast } from "../../shared/toast";
import { Problem } from "../../shared/problem";
import { plural, dateTime, translator } from "../../shared/i18n";
import { type Command, commands, isReadCommand, issueToken } from "../agents/commands";
import { NewToken } from "../agents/new_token";
import { Scopes } from "../agents/scopes";
import { TokenAccess } from "../agents/token_access";
import { type Meta, type Model, type Row, run } from "../api";
import { may, modelOf } from "../models";
import { RecordLink } from "../values/record_link";
import "../agents/agents.css";

const t = translator("agents");

const LIVES_DAYS = [1, 7, 30, 90, 365];
const DAY_S = 86_400;

export function Agents({ meta }: { meta: Meta }) {
  const model = modelOf(meta, "agent_token");
  return model ? <Tokens meta={meta} model={model} /> : <NotFound />;
}

function Tokens({ meta, model }: { meta: Meta; model: Model }) {
  const [isMaking, setMaking] = useState(false);
  const [made, setMade] = useState<{ token: string; label: string } | null>(null);
  const [leaving, setLeaving] = useState<Row | null>(null);
  const order = [{ field: "issued_at", dir: "desc" }];
  const found = useRequest((signal) => run<Row[]>("agent_token", "list", { order, limit: 200 }, signal), [made?.token], { keepsPrevious: true });
  const revoke = async (row: Row) => {
    setLeaving(null);
    try {
      await run("agent_token", "revoke", { id: row.id });
      showToast(t("revoked"));
    } catch (error) {
      showToast((Problem.from(error)).message);
    }
    found.reload();
  };
  return (
    <div class="stack">
      <Heading title={t("title")}>
        {!isMaking && !made && (
          <Button look="strong" onClick={() => setMaking(true)}>
            {t("create")}
          </Button>
        )}
      </Heading>
      <p class="quiet">{t("lead")}</p>
      {made && <NewToken {...made} onDone={() => setMade(null)} />}
      {isMaking && (
        <Making
          meta={meta}
          onMade={(token, label) => (setMade({ token, label }), setMaking(false))}
          onClose={() => setMaking(false)}
        />
      )}
      <h2>{t("known")}</h2>
      <RequestResult of={found}>
        {({ value }) =>
          value.length === 0 ? (
            <Empty title={t("none")} />
          ) : (
            <Table
              caption={t("known")}
              rows={value}
              keyOf={(row) => row.id}
              columns={[
                { name: "label", label: t("label"), cell: (row) => String(row["label"] ?? "") },
                { name: "scopes", label: t("scopes"), cell: (row) => <code class="small wraps">{String(row["scopes"] ?? "").replaceAll(",", ", ")}</code> },
                { name: "user", label: t("by"), cell: (row) => <RecordLink model={modelOf(meta, "user")} id={String(row["user"])} /> },
                { name: "issued_at", label: t("issued"), cell: (row) => dateTime(String(row["issued_at"])) },
                { name: "expires_at", label: t("expires"), cell: (row) => dateTime(String(row["expires_at"])) },
                { name: "state", label: t("state"), cell: (row) => <State row={row} /> },
                {
                  name: "revoke",
                  label: t("revoke"),
                  cell: (row) =>
                    may(model, "revoke") && isLive(row) ? (
                      <Button tight look="risky" aria-label={t("revoke.title", { label: String(row["label"]) })} onClick={() => setLeaving(row)}>
                        {t("revoke")}
                      </Button>
                    ) : null,
                },
              ]}
            />
          )
        }
      </RequestResult>
      <Dialog
        title={t("revoke.title", { label: String(leaving?.["label"] ?? "") })}
        isOpen={leaving !== null}
        onClose={() => setLeaving(null)}
        actions={
          leaving && (
            <Button look="risky" onClick={() => void revoke(leaving)}>
              {t("revoke")}
            </Button>
          )
        }
      >
        <p>{t("revoke.text")}</p>
      </Dialog>
    </div>
  );
}

function isLive(row: Row): boolean {
  return row["ended_at"] === null && Date.parse(String(row["expires_at"])) > Date.now();
}

function State({ row }: { row: Row }) {
  if (isLive(row)) {
    return <Chip tone="good">{t("live")}</Chip>;
  }
  return <Chip>{t(row["ended_at"] === null ? "expired" : "ended")}</Chip>;
}

/** All that a model has is one scope, so that a token never needs more of them than the API takes. */
function scopes(meta: Meta, chosen: ReadonlySet<string>): string[] {
  return meta.models.flatMap((model) =>
    model.commands.every((each) => chosen.has(each)) ? [`${model.name}.*`] : model.commands.filter((each) => chosen.has(each)),
  );
}

interface MakingProps {
  meta: Meta;
  onMade: (token: string, label: string) => void;
  onClose: () => void;
}

function Making({ meta, onMade, onClose }: MakingProps) {
  const found = useRequest((signal) => commands(signal), []);
  return (
    <section class="panel-box" aria-labelledby="making">
      <h2 id="making">{t("create")}</h2>
      <RequestResult of={found}>{(known) => <Asking {...{ meta, known, onMade, onClose }} />}</RequestResult>
    </section>
  );
}

function Asking({ meta, known, onMade, onClose }: MakingProps & { known: readonly Command[] }) {
  const worked = new Set(meta.models.filter((each) => each.module !== "base").map((each) => each.name));
  const usual = known.filter((each) => isReadCommand(each.id) && worked.has(each.id.split(".")[0] ?? ""));
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(usual.map((each) => each.id)));
  const [label, setLabel] = useState("");
  const [days, setDays] = useState("90");
  const [problem, setProblem] = useState<Problem | null>(null);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    if (chosen.size === 0) {
      setProblem(new Problem(0, { detail: t("scopes.none") }));
      return;
    }
    try {
      onMade(await issueToken({ label, scopes: scopes(meta, chosen), expires_in: Number(days) * DAY_S }), label);
    } catch (error) {
      setProblem(Problem.from(error));
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <Faults problem={problem} />
      <TextField name="label" label={t("label")} help={t("label.help")} value={label} maxLength={100} required onInput={(event) => setLabel(event.currentTarget.value)} />
      <SelectField
        name="life"
        label={t("life")}
        value={days}
        onChange={setDays}
        options={LIVES_DAYS.map((each) => [String(each), plural(each, t("days.one"), t("days"))])}
      />
      <Scopes meta={meta} commands={known} chosen={chosen} onChoose={setChosen} />
      <TokenAccess meta={meta} chosen={chosen} />
      <div class="row">
        <Button type="submit" look="strong">
          {t("make")}
        </Button>
        <Button onClick={onClose}>{t("done")}</Button>
      </div>
    </form>
  );
}
