// The records of any model: a grid of all of them, with filter, order, columns and views in the address.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button, LinkButton } from "../../shared/components/button";
import { Heading } from "../../shared/components/heading";
import { NotFound } from "../../shared/components/shell";
import { Empty, Failed } from "../../shared/components/states";
import { showToast } from "../../shared/toast";
import { go, query } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import { plural, translator } from "../../shared/i18n";
import type { Field, Meta, Model, Row } from "../api";
import { addressOf, canList, workflowField, may, modelOf } from "../models";
import { Columns } from "../list/columns";
import { Conditions, Filters } from "../list/filters";
import { Grid } from "../list/grid";
import { SelectionBar } from "../list/selection_bar";
import { useRowSelection } from "../list/selection";
import { hasBulkCommands } from "../list/bulk";
import { listQuery, setOrder, searchInput, toggleSort } from "../list/query";
import { Rows } from "../list/rows";
import { Sorting } from "../list/sorting";
import { Views } from "../list/views";
import { Conflict, type Conflicting } from "../record/conflict";
import { save } from "../record/save";

const t = translator("list");

export function List({ meta, name }: { meta: Meta; name: string }) {
  const model = modelOf(meta, name);
  return model && canList(model) ? <Records meta={meta} model={model} /> : <NotFound />;
}

const PANELS = ["filter", "sort", "columns", "views"] as const;

/** What the grid listens to, for the sheet of keys. */
const KEYS = [
  ["← ↑ ↓ →", "key.move"],
  ["Home End", "key.far"],
  ["PageUp PageDown", "key.page"],
  ["Enter", "key.enter"],
  ["F2", "key.edit"],
  ["Shift ← →", "key.wide"],
] as const;
const PICKING_KEYS = [
  ["Space", "key.pick"],
  ["Ctrl A", "key.all"],
  ["Escape", "key.clear"],
] as const;

function Records({ meta, model }: { meta: Meta; model: Model }) {
  const { filter, order, columns } = listQuery(model);
  const about = JSON.stringify(searchInput({ filter, order }));
  const rows = useMemo(() => new Rows(model, JSON.parse(about) as object), [model.name, about]);
  useEffect(() => () => rows.close(), [rows]);
  const picking = useRowSelection(rows);
  const canPick = hasBulkCommands(model);
  useEffect(picking.clear, [model.name, JSON.stringify(filter)]);
  const [panel, setPanel] = useState<(typeof PANELS)[number] | null>(null);
  // How often the key asked for the filter, which then takes the keyboard; and where that was before.
  const [calls, setCalls] = useState(0);
  const before = useRef<Element | null>(null);
  const turn = (next: (typeof PANELS)[number] | null) => {
    setPanel(next);
    setCalls(0);
  };
  const leaveFilter = () => {
    const last = calls > 0 ? before.current : null;
    const isThere = last instanceof HTMLElement && last.isConnected && last !== document.body;
    turn(null);
    (isThere ? last : document.getElementById("panel-filter"))?.focus();
  };
  const [conflict, setConflict] = useState<(Conflicting & { field: Field }) | null>(null);
  const callFilter = () => {
    before.current = document.activeElement;
    setPanel("filter");
    setCalls((last) => last + 1);
  };
  useLayoutEffect(() => {
    const known = [
      ...KEYS.map(([key, does]) => registerShortcut({ key, does: t(does) })),
      registerShortcut({ key: "f", does: t("key.filter"), run: callFilter }),
      ...(canPick ? PICKING_KEYS.map(([key, does]) => registerShortcut({ key, does: t(does) })) : []),
      ...(may(model, "create") ? [registerShortcut({ key: "n", does: t("key.new"), run: () => go(`/models/${model.name}/new`) })] : []),
    ];
    return () => known.forEach((each) => each());
  }, [model.name]);

  const put = async (row: Row, field: Field, value: unknown): Promise<boolean> => {
    const done = await save(model, row, { [field.name]: value });
    switch (done.state) {
      case "saved":
        rows.put(done.row);
        showToast(t("saved"), { label: t("undo"), run: () => void undo(done.row, field, row[field.name]) });
        return true;
      case "proposed":
        showToast(t("proposed"));
        return true;
      case "conflict":
        setConflict({ base: row, theirs: done.theirs, mine: { [field.name]: value }, field });
        return true;
      default:
        showToast(done.problem.message);
        return false;
    }
  };
  const undo = async (row: Row, field: Field, before: unknown) => {
    const done = await save(model, row, { [field.name]: before });
    if (done.state === "saved") {
      rows.put(done.row);
      showToast(t("undone"));
    } else if (done.state === "conflict") {
      setConflict({ base: row, theirs: done.theirs, mine: { [field.name]: before }, field });
    } else if (done.state === "refused") {
      showToast(done.problem.message);
    }
  };
  const decide = (changes: Record<string, unknown>) => {
    if (conflict) {
      rows.put(conflict.theirs);
      setConflict(null);
      if (conflict.field.name in changes) {
        void put(conflict.theirs, conflict.field, changes[conflict.field.name]);
      }
    }
  };
  const isEmpty = rows.total.value === 0;
  return (
    <div class="stack">
      <Heading title={model.plural}>
        <div class="row">
          {workflowField(model) && <LinkButton href={`/models/${model.name}/board`}>{t("board")}</LinkButton>}
          {may(model, "import") && <LinkButton href={`/models/${model.name}/import`}>{t("import")}</LinkButton>}
          {may(model, "create") && (
            <LinkButton look="strong" href={`/models/${model.name}/new`}>
              {t("new")}
            </LinkButton>
          )}
        </div>
      </Heading>
      <div class="row">
        {PANELS.map((each) => (
          <Button
            key={each}
            id={`panel-${each}`}
            tight
            aria-expanded={panel === each}
            onClick={() => turn(panel === each ? null : each)}
          >
            {t(each)}
          </Button>
        ))}
        <Button tight look="plain" onClick={() => void copyCall(model, about)}>
          {t("call")}
        </Button>
        {may(model, "export") && (
          <>
            <Button tight look="plain" onClick={() => void download(model, about, columns)}>
              {t("export")}
            </Button>
            <Button tight look="plain" onClick={() => void download(model, about, null)}>
              {t("export.raw")}
            </Button>
          </>
        )}
        <span class="quiet small count" role="status">
          {rows.total.value === null ? t("counting") : plural(rows.total.value, t("count.one"), t("count"))}
        </span>
      </div>
      {panel === "filter" && <Filters {...{ meta, model, filter, calls }} onLeave={leaveFilter} />}
      {panel === "sort" && <Sorting {...{ model, order }} />}
      {panel === "columns" && <Columns {...{ model, columns }} />}
      {panel === "views" && <Views key={query.value.toString()} model={model.name} />}
      <Conditions {...{ model, filter }} />
      {rows.problem.value && <Failed problem={rows.problem.value} onRetry={() => rows.reload()} />}
      {/* Without any row there is nothing but what went wrong. */}
      {rows.problem.value && rows.total.value === null ? null : isEmpty ? (
        <Empty title={t("none")}>
          <p>{t(filter.length ? "none.text" : "none.yet")}</p>
        </Empty>
      ) : (
        <Grid
          {...{ meta, model, columns, rows, order }}
          picking={canPick ? picking : null}
          onOrder={(field, adds) => setOrder(toggleSort(order, field, adds))}
          onOpen={(row) => may(model, "get") && go(addressOf(model.name, row.id))}
          onSave={put}
        />
      )}
      {/* Below the rows: above, it would move them away from the pointer that picks. */}
      {canPick && <SelectionBar {...{ meta, model, rows, picking }} />}
      <p class="quiet small">{t("keys")}</p>
      {conflict && <Conflict {...{ meta, model, conflict }} onDecide={decide} onClose={() => setConflict(null)} />}
    </div>
  );
}

async function copyCall(model: Model, about: string): Promise<void> {
  const { curlCommand: callOf, copyText: copied } = await import("../list/curl");
  await copied(callOf(model, about));
}

async function download(model: Model, about: string, columns: readonly Field[] | null): Promise<void> {
  const { exportCsv: exported, exportRawCsv: exportedRaw } = await import("../list/export");
  const input = JSON.parse(about) as object;
  await (columns ? exported(model, input, columns) : exportedRaw(model, input));
}
