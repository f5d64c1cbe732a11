// The list of records of any model: a grid with filter, order, columns and views in its address.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button, LinkButton } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { Heading } from "../../shared/components/heading";
import { Menu } from "../../shared/components/menu";
import { NotFound } from "../../shared/components/shell";
import { Empty, FailureNotice } from "../../shared/components/states";
import { showToast } from "../../shared/toast";
import { go, query } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import { translator } from "../../shared/i18n";
import "../list/list.css";
import type { Field, Meta, Model, Row } from "../api";
import { canList, workflowField, mayRun, modelOf, nounOf } from "../models";
import { recordCounts, setRecordCount } from "../shell/record_counts";
import { Columns } from "../list/columns";
import { FilterBar } from "../list/filters";
import { FootBar } from "../list/foot_bar";
import { Grid } from "../list/grid";
import { SelectionBar } from "../list/selection_bar";
import { useRowSelection } from "../list/selection";
import { hasBulkCommands } from "../list/bulk";
import { listQuery, setFilter, setOrder, searchInput, toggleSort } from "../list/query";
import { Rows } from "../list/rows";
import { addressInList, storeTotal } from "../list/list_position";
import { Sorting } from "../list/sorting";
import { addressWithQuery, declaredViews, loadViews, VIEW_PARAM, views } from "../list/saved_views";
import { ListFavourite, ViewChanged, ViewTabs } from "../list/views";
import { isNarrow } from "../screen_size";
import { Popover } from "../popover";
import { ViewSwitch } from "../list/view_switch";
import { Conflict, type EditConflict } from "../record/conflict";
import { save } from "../record/save";

const t = translator("list");

export function List({ meta, name }: { meta: Meta; name: string }) {
  const model = modelOf(meta, name);
  return model && canList(model) ? <ListEntry meta={meta} model={model} /> : <NotFound />;
}

/** The list. An address without a query leads to the first view that the model declares, and one with nothing but a
 *  declared view to the query of that view. */
function ListEntry({ meta, model }: { meta: Meta; model: Model }) {
  const isBare = query.value.size === 0;
  const isOnlyView = query.value.size === 1 && query.value.has(VIEW_PARAM);
  const view = isBare || isOnlyView ? declaredViews(model).find((declaredView) => isBare || declaredView.id === query.value.get(VIEW_PARAM)) : undefined;
  useLayoutEffect(() => {
    if (view) {
      go(addressWithQuery(model.name, view), { replaces: true });
    }
  }, [view?.id]);
  return view ? null : <Records meta={meta} model={model} />;
}

const PANELS = [
  ["sort", "arrow-up-down"],
  ["columns", "columns-3"],
] as const;

/** The keys that the grid handles, for the list of shortcuts. */
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
  const inputText = JSON.stringify(searchInput({ filter, order }));
  const rows = useMemo(() => new Rows(model, JSON.parse(inputText) as object), [model.name, inputText]);
  useEffect(() => () => rows.close(), [rows]);
  const picking = useRowSelection(rows);
  const canPick = hasBulkCommands(model);
  useEffect(picking.clear, [model.name, JSON.stringify(filter)]);
  useLayoutEffect(() => {
    const controller = new AbortController();
    views.value = declaredViews(model);
    // Ignore the error: the list works without views.
    loadViews(meta, model, controller.signal).catch(() => undefined);
    return () => controller.abort();
  }, [model.name]);
  const [panel, setPanel] = useState<(typeof PANELS)[number][0] | null>(null);
  const [edited, setEdited] = useState<number | "new" | null>(null);
  // The focused element before the key opened the filter; the focus returns to it.
  const focusBefore = useRef<Element | null>(null);
  const editFilter = (editedIndex: number | "new" | null) => {
    setEdited(editedIndex);
    const focusTarget = editedIndex === null ? focusBefore.current : null;
    focusBefore.current = null;
    if (focusTarget instanceof HTMLElement && focusTarget.isConnected && focusTarget !== document.body) {
      setTimeout(() => focusTarget.focus(), 0);
    }
  };
  const [conflict, setConflict] = useState<(EditConflict & { field: Field }) | null>(null);
  const callFilter = () => {
    focusBefore.current = document.activeElement;
    setEdited("new");
  };
  useLayoutEffect(() => {
    const unregister = [
      ...KEYS.map(([key, label]) => registerShortcut({ key, does: t(label) })),
      registerShortcut({ key: "f", does: t("key.filter"), run: callFilter }),
      ...(canPick ? PICKING_KEYS.map(([key, label]) => registerShortcut({ key, does: t(label) })) : []),
      ...(mayRun(model, "create") ? [registerShortcut({ key: "c", does: t("key.new"), run: () => go(`/models/${model.name}/new`) })] : []),
    ];
    return () => unregister.forEach((remove) => remove());
  }, [model.name]);

  const saveValue = async (row: Row, field: Field, value: unknown): Promise<boolean> => {
    const outcome = await save(model, row, { [field.name]: value });
    switch (outcome.state) {
      case "saved":
        rows.put(outcome.row);
        showToast(t("saved"), { label: t("undo"), run: () => void undo(outcome.row, field, row[field.name]) });
        return true;
      case "proposed":
        showToast(t("proposed"));
        return true;
      case "conflict":
        setConflict({ base: row, serverRecord: outcome.serverRecord, ownChanges: { [field.name]: value }, field });
        return true;
      default:
        showToast(outcome.problem.message);
        return false;
    }
  };
  const undo = async (row: Row, field: Field, valueBefore: unknown) => {
    const outcome = await save(model, row, { [field.name]: valueBefore });
    if (outcome.state === "saved") {
      rows.put(outcome.row);
      showToast(t("undone"));
    } else if (outcome.state === "conflict") {
      setConflict({ base: row, serverRecord: outcome.serverRecord, ownChanges: { [field.name]: valueBefore }, field });
    } else if (outcome.state === "refused") {
      showToast(outcome.problem.message);
    }
  };
  const decide = (changes: Record<string, unknown>) => {
    if (conflict) {
      rows.put(conflict.serverRecord);
      setConflict(null);
      if (conflict.field.name in changes) {
        void saveValue(conflict.serverRecord, conflict.field, changes[conflict.field.name]);
      }
    }
  };
  const isEmpty = rows.total.value === 0;
  const isWhole = filter.length === 0;
  useEffect(() => {
    if (rows.total.value !== null) {
      storeTotal(model, JSON.parse(inputText) as object, rows.total.value);
    }
    if (isWhole && rows.total.value !== null) {
      setRecordCount(model.name, rows.total.value);
    }
  }, [inputText, rows.total.value]);
  const board = workflowField(model) && mayRun(model, "search");
  const newRecord = mayRun(model, "create") && (
    <LinkButton tight variant="strong" href={`/models/${model.name}/new`}>
      <Icon name="plus" size="s" />
      {t("new.one", { model: nounOf(model.label) })}
      <kbd>C</kbd>
    </LinkButton>
  );
  return (
    <div class="page list-page">
      <Heading title={model.plural}>
        <ViewTabs {...{ meta, model }} total={rows.total.value} totalUnfiltered={recordCounts.value[model.name]} />
        <div class="head-end">
          {model.is_connected && !mayRun(model, "update") && (
            <span class="chip plain" title={t("read_only.text")}>
              {t("read_only")}
            </span>
          )}
          <ListFavourite model={model} />
          {board && <ViewSwitch model={model} current="table" />}
          {mayRun(model, "import") && (
            <LinkButton tight href={`/models/${model.name}/import`}>
              <Icon name="upload" size="s" />
              <span class="head-words">{t("import")}</span>
            </LinkButton>
          )}
          {!isNarrow.value && newRecord}
        </div>
      </Heading>
      <div class="tool-bar">
        <FilterBar {...{ meta, model, filter }} edited={edited} onEdit={editFilter} />
        <div class="bar-end">
          <ViewChanged model={model} />
          {PANELS.map(([name, icon]) => (
            <Popover
              key={name}
              isOpen={panel === name}
              onClose={() => setPanel(null)}
              label={t(name)}
              opener={
                <Button id={`panel-${name}`} tight variant="plain" aria-label={t(name)} title={t(name)} aria-expanded={panel === name} onClick={() => setPanel(panel === name ? null : name)}>
                  <Icon name={icon} size="s" />
                  <span class="bar-words">{t(name)}</span>
                </Button>
              }
            >
              {name === "sort" ? <Sorting {...{ model, order }} /> : <Columns {...{ model, columns }} />}
            </Popover>
          ))}
          <Menu
            tight
            label={t("export.menu")}
            opener={
              <>
                <Icon name="download" size="s" />
                <span class="bar-words">{t("export")}</span>
              </>
            }
            items={[
              ...(mayRun(model, "export")
                ? [
                    { label: t("export.shown"), does: () => void download(model, inputText, columns) },
                    { label: t("export.raw"), does: () => void download(model, inputText, null) },
                  ]
                : []),
              { label: t("call"), does: () => void copyCall(model, inputText) },
            ]}
          />
        </div>
      </div>
      {rows.problem.value && <FailureNotice problem={rows.problem.value} onRetry={() => rows.reload()} />}
      {/* Without any row there is nothing but what went wrong. */}
      {rows.problem.value && rows.total.value === null ? null : isEmpty ? (
        <Empty title={t("none")}>
          <p>{t(filter.length ? "none.text" : "none.yet")}</p>
          {filter.length > 0 && <Button onClick={() => setFilter(model, [])}>{t("filter.clear")}</Button>}
        </Empty>
      ) : (
        <Grid
          {...{ meta, model, columns, rows, order }}
          selection={canPick ? picking : null}
          onSort={(field, adds) => setOrder(model, toggleSort(model, order, field, adds))}
          onOpen={(row, index) => mayRun(model, "get") && go(addressInList(model, row.id, index))}
          onSave={saveValue}
        />
      )}
      {canPick && <SelectionBar {...{ meta, model, rows, selection: picking }} onExport={(ids) => void download(model, JSON.stringify({ filter: [{ field: "id", op: "in", value: ids }] }), columns)} />}
      {/* On a phone, a new record is within reach of the thumb. */}
      <FootBar {...{ model, rows }}>{isNarrow.value && newRecord}</FootBar>
      {conflict && <Conflict {...{ meta, model, conflict }} onDecide={decide} onClose={() => setConflict(null)} />}
    </div>
  );
}

async function copyCall(model: Model, inputText: string): Promise<void> {
  const { curlCommand: callOf, copyText: copied } = await import("../list/curl");
  await copied(callOf(model, inputText));
}

async function download(model: Model, inputText: string, columns: readonly Field[] | null): Promise<void> {
  const { exportCsv: exported, exportRawCsv: exportedRaw } = await import("../list/csv_export");
  const input = JSON.parse(inputText) as object;
  await (columns ? exported(model, input, columns) : exportedRaw(model, input));
}
