// The analytics of an organisation, and below them all its totals.
import { useRequest } from "../../shared/request";
import { RequestResult } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { number, size, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Curl } from "../curl";
import { PLATFORMS, type Platform } from "../platform";
import { Bar } from "./share_bar";
import { Statistics } from "./statistics";

const tStore = translator("store");
const t = translator("publisher");

const COUNTED_NUMBERS = [
  "downloads",
  "redemptions",
  "codes",
  "products",
  "public_products",
  "releases",
  "artifacts",
  "members",
  "clients",
] as const;

type Numbers = Schemas["Usage"];

export function Usage({ org }: { org: string }) {
  const request = useRequest(async (signal) => (await api.get("/api/v1/org/usage", { query: { org }, signal })).value, [org]);
  return (
    <>
      <Statistics org={org} />
      <details class="stats-rest">
        <summary>{t("usage.whole")}</summary>
        <div class="stack">
          <RequestResult request={request}>{(value) => <UsageNumbers value={value} />}</RequestResult>
          <div>
            <Curl method="GET" path={`/api/v1/org/usage?org=${encodeURIComponent(org)}`} />
          </div>
        </div>
      </details>
    </>
  );
}

/** The most downloaded versions, with bars relative to the first. */
function DownloadTable({ rows }: { rows: Numbers["downloaded"] }) {
  const maxDownloads = Math.max(1, ...rows.map((row) => row.downloads));
  return rows.length ? (
    <Table
      caption={t("usage.versions")}
      rows={rows}
      keyOf={(row) => `${row.product} ${row.version} ${row.platform}`}
      columns={[
        {
          name: "version",
          label: t("version"),
          cell: (row) => (
            <a href={`/publisher/products/${row.product}/releases/${encodeURIComponent(row.version)}`}>
              {row.product} {row.version}
            </a>
          ),
        },
        { name: "platform", label: tStore("platform"), cell: (row) => nameOf(row.platform) },
        { name: "number", label: t("usage.downloads"), cell: (row) => number(row.downloads), isNumber: true },
        { name: "bar", label: t("usage.bar"), cell: (row) => <Bar share={row.downloads / maxDownloads} /> },
      ]}
    />
  ) : (
    <p>{t("usage.versions.none")}</p>
  );
}

function nameOf(platform: string | null): string {
  return platform !== null && platform in PLATFORMS ? PLATFORMS[platform as Platform] : t("platform.none");
}

function UsageNumbers({ value }: { value: Numbers }) {
  const maxCount = Math.max(1, ...COUNTED_NUMBERS.map((countedNumber) => value[countedNumber]));
  return (
    <>
      <Table
        caption={t("usage")}
        rows={COUNTED_NUMBERS}
        keyOf={(countedNumber) => countedNumber}
        columns={[
          { name: "what", label: t("usage.what"), cell: (countedNumber) => t(`usage.${countedNumber}`) },
          { name: "number", label: t("usage.number"), cell: (key) => number(value[key]), isNumber: true },
          { name: "bar", label: t("usage.bar"), cell: (number) => <Bar share={value[number] / maxCount} /> },
        ]}
      />
      <p>{t("usage.stored", { size: size(value.stored_bytes) })}</p>
      <DownloadTable rows={value.downloaded} />
    </>
  );
}
