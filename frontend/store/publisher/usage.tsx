// How the organisation is used, as bars whose numbers stand in the same table.
import { useAsked } from "../../shared/asked";
import { Answer } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { number, size } from "../../shared/words";
import { api, type Schemas } from "../api";
import { Curl } from "../curl";
import { PLATFORMS, type Platform } from "../platform";
import { say as store } from "../say";
import { Bar } from "./bar";
import { say } from "./say";
import { say as own } from "./usage_say";

const COUNTED = [
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
  const found = useAsked(async (signal) => (await api.get("/api/v1/org/usage", { query: { org }, signal })).value, [org]);
  return (
    <div class="stack">
      <Answer of={found}>{(value) => <Shown value={value} />}</Answer>
      <div>
        <Curl method="GET" path={`/api/v1/org/usage?org=${encodeURIComponent(org)}`} />
      </div>
    </div>
  );
}

/** The most downloaded versions; how much each is of the first. */
function Downloaded({ rows }: { rows: Numbers["downloaded"] }) {
  const most = Math.max(1, ...rows.map((each) => each.downloads));
  return rows.length ? (
    <Table
      caption={own("usage.versions")}
      rows={rows}
      keyOf={(each) => `${each.product} ${each.version} ${each.platform}`}
      columns={[
        {
          name: "version",
          label: say("version"),
          cell: (each) => (
            <a href={`/publisher/products/${each.product}/releases/${encodeURIComponent(each.version)}`}>
              {each.product} {each.version}
            </a>
          ),
        },
        { name: "platform", label: store("platform"), cell: (each) => nameOf(each.platform) },
        { name: "number", label: own("usage.downloads"), cell: (each) => number(each.downloads), isNumber: true },
        { name: "bar", label: own("usage.bar"), cell: (each) => <Bar share={each.downloads / most} /> },
      ]}
    />
  ) : (
    <p>{own("usage.versions.none")}</p>
  );
}

function nameOf(platform: string | null): string {
  return platform !== null && platform in PLATFORMS ? PLATFORMS[platform as Platform] : say("platform.none");
}

function Shown({ value }: { value: Numbers }) {
  const most = Math.max(1, ...COUNTED.map((each) => value[each]));
  return (
    <>
      <Table
        caption={say("usage")}
        rows={COUNTED}
        keyOf={(each) => each}
        columns={[
          { name: "what", label: own("usage.what"), cell: (each) => own(`usage.${each}`) },
          { name: "number", label: own("usage.number"), cell: (each) => number(value[each]), isNumber: true },
          { name: "bar", label: own("usage.bar"), cell: (each) => <Bar share={value[each] / most} /> },
        ]}
      />
      <p>{own("usage.stored", { size: size(value.stored_bytes) })}</p>
      <Downloaded rows={value.downloaded} />
    </>
  );
}
