// The analytics of an organisation, and below them all its totals.
import { useRequest } from "../../shared/request";
import { RequestResult } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { number, size, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { Curl } from "../curl";
import { PLATFORMS, type Platform } from "../platform";
import { Bar } from "./bar";
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
          <RequestResult of={request}>{(value) => <UsageNumbers value={value} />}</RequestResult>
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
  const maxDownloads = Math.max(1, ...rows.map((each) => each.downloads));
  return rows.length ? (
    <Table
      caption={t("usage.versions")}
      rows={rows}
      keyOf={(each) => `${each.product} ${each.version} ${each.platform}`}
      columns={[
        {
          name: "version",
          label: t("version"),
          cell: (each) => (
            <a href={`/publisher/products/${each.product}/releases/${encodeURIComponent(each.version)}`}>
              {each.product} {each.version}
            </a>
          ),
        },
        { name: "platform", label: tStore("platform"), cell: (each) => nameOf(each.platform) },
        { name: "number", label: t("usage.downloads"), cell: (each) => number(each.downloads), isNumber: true },
        { name: "bar", label: t("usage.bar"), cell: (each) => <Bar share={each.downloads / maxDownloads} /> },
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
  const maxCount = Math.max(1, ...COUNTED_NUMBERS.map((each) => value[each]));
  return (
    <>
      <Table
        caption={t("usage")}
        rows={COUNTED_NUMBERS}
        keyOf={(each) => each}
        columns={[
          { name: "what", label: t("usage.what"), cell: (each) => t(`usage.${each}`) },
          { name: "number", label: t("usage.number"), cell: (each) => number(value[each]), isNumber: true },
          { name: "bar", label: t("usage.bar"), cell: (each) => <Bar share={value[each] / maxCount} /> },
        ]}
      />
      <p>{t("usage.stored", { size: size(value.stored_bytes) })}</p>
      <DownloadTable rows={value.downloaded} />
    </>
  );
}
