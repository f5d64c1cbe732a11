// /design: shows every component and token, for developers and tests.
import { useState } from "preact/hooks";
import { Button, CopyButton, LinkButton } from "./components/button";
import { Chip, NotPermitted, MaskedValue } from "./components/chip";
import { Dialog } from "./components/dialog";
import { FormErrors, SelectField, TextField } from "./components/field";
import { Icon } from "./components/icon";
import { Heading } from "./components/heading";
import { Menu } from "./components/menu";
import { Empty, FailureNotice, Loading } from "./components/states";
import { Table } from "./components/table";
import { Tabs } from "./components/tabs";
import { showToast } from "./toast";
import { Problem } from "./problem";
import { date, money, number, size, translator } from "./i18n";

const t = translator("common");

const COLOURS = ["bg", "bg-2", "bg-3", "bg-4", "text", "text-2", "text-3", "accent", "accent-soft", "ink", "good", "info", "cyan", "violet", "warn", "bad"];
const PROBLEM = new Problem(422, {
  title: "Unprocessable",
  detail: "The code has too few characters.",
  resolution: "Copy it whole, dashes included.",
  errors: [{ parameter: "design-code", detail: "needs 25 characters" }],
});

export function Design() {
  return (
    <div class="stack">
      <Heading title={t("design")} />
      <p class="lead">
        Neutral surfaces, meaningful colours. Green is what can be pressed or what is chosen; each state has a colour,
        a dot and a word; solid amber marks only what a person must approve. All values come from tokens.css.
      </p>
      <Colours />
      <ButtonSamples />
      <InputSamples />
      <DataSamples />
      <StateSamples />
    </div>
  );
}

function Colours() {
  return (
    <section class="stack" aria-labelledby="design-colours">
      <h2 id="design-colours">Colours and type</h2>
      <ul class="swatches">
        {COLOURS.map((colour) => (
          <li key={colour} class="row small">
            <svg width="40" height="28" aria-hidden="true">
              <rect width="39" height="27" x="0.5" y="0.5" rx="6" fill={`var(--${colour})`} stroke="var(--edge)" />
            </svg>
            {colour}
          </li>
        ))}
      </ul>
      <p>
        Text, <span class="quiet">quiet text</span>, <span class="small">small text</span>, <code>code</code>,{" "}
        <a href="/design">a link</a>; {date("2026-11-21")}, {number(1234567.5)}, {money(129900, "EUR")}, {size(52_600_000)}.
      </p>
    </section>
  );
}

function ButtonSamples() {
  const [isOpen, setOpen] = useState(false);
  return (
    <section class="stack" aria-labelledby="design-buttons">
      <h2 id="design-buttons">Buttons</h2>
      <div class="row">
        <Button variant="strong" onClick={() => showToast("Saved", { label: "Undo", run: () => showToast("Undone") })}>
          Save
        </Button>
        <Button variant="ink">
          Approve <kbd>A</kbd>
        </Button>
        <Button onClick={() => setOpen(true)}>Open a dialog</Button>
        <Button variant="risky">Reject</Button>
        <Button variant="plain">Plain</Button>
        <Button size="large" variant="strong">
          <Icon name="download" /> Large
        </Button>
        <Button size="square" aria-label="Search">
          <Icon name="search" />
        </Button>
        <Button disabled>Not now</Button>
        <Button busy>Working</Button>
        <LinkButton href="/design">Link</LinkButton>
        <Menu
          label={t("options")}
          items={[
            { label: "Rename", does: () => showToast("Renamed.") },
            { label: "Home", does: "/" },
            { label: "Move", does: [{ label: "To the archive", does: () => showToast("Archived.") }] },
          ]}
        />
        <CopyButton text="DEMO0-LICEN-SE000-00001" name="the code" />
      </div>
      <Dialog
        title="Revoke this key?"
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        actions={
          <Button variant="risky" onClick={() => setOpen(false)}>
            Revoke
          </Button>
        }
      >
        <p>Whatever uses it stops working at once.</p>
      </Dialog>
    </section>
  );
}

function InputSamples() {
  const [kind, setKind] = useState("game");
  const [problem, setProblem] = useState<Problem | null>(null);
  return (
    <section class="stack" aria-labelledby="design-fields">
      <h2 id="design-fields">Fields</h2>
      <FormErrors problem={problem} />
      <TextField name="design-title" label="Title" help="1 to 200 characters." required />
      <TextField name="design-code" label="Code" error={problem?.fieldErrors[0]?.detail} />
      <SelectField name="design-kind" label="Kind" value={kind} onChange={setKind} options={[["game", "Game"], ["tool", "Tool"]]} />
      <div class="row">
        <Button onClick={() => setProblem(PROBLEM)}>Show its errors</Button>
      </div>
    </section>
  );
}

function DataSamples() {
  const [order, setOrder] = useState<{ field: string; dir: "asc" | "desc" }>({ field: "name", dir: "asc" });
  const [tab, setTab] = useState("stable");
  const rows = [
    { name: "Aurora Freight", who: "PERSON_208471930562114", size: 52_600_000 },
    { name: "Night Ferry", who: "PERSON_118840027719034", size: 1_200_000 },
  ];
  return (
    <section class="stack" aria-labelledby="design-data">
      <h2 id="design-data">Data</h2>
      <div class="row">
        <Chip>draft</Chip>
        <Chip tone="good">published</Chip>
        <Chip tone="info">new</Chip>
        <Chip tone="cyan">qualified</Chip>
        <Chip tone="violet">proposed</Chip>
        <Chip tone="warn">expires soon</Chip>
        <Chip tone="bad">withdrawn</Chip>
        <Chip plain>plain</Chip>
        <span class="badge">3</span>
        <MaskedValue token="EMAIL_208471930562114" label="EMAIL" />
        <NotPermitted />
      </div>
      <Table
        caption="A few rows"
        rows={rows}
        keyOf={(row) => row.name}
        order={order}
        onOrder={setOrder}
        columns={[
          { name: "name", label: "Name", cell: (row) => row.name, canSort: true },
          { name: "who", label: "Contact", cell: (row) => <MaskedValue token={row.who} label="PERSON" /> },
          { name: "size", label: "Size", cell: (row) => size(row.size), isNumber: true, canSort: true },
        ]}
      />
      <Tabs
        label="Channels"
        chosen={tab}
        onChoose={setTab}
        tabs={[
          { name: "stable", label: "Stable", content: () => <p>2.1.0</p> },
          { name: "beta", label: "Beta", content: () => <p>2.2.0-beta.3</p> },
        ]}
      />
    </section>
  );
}

function StateSamples() {
  return (
    <section class="stack" aria-labelledby="design-states">
      <h2 id="design-states">Loading, empty and failed</h2>
      <Loading />
      <Empty>
        <p>Redeem a code, and its products appear here.</p>
      </Empty>
      <FailureNotice problem={PROBLEM} onRetry={() => showToast("Again.")} />
      <p class="notice">A notice that stays.</p>
    </section>
  );
}

