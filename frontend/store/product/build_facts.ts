// What the API says about a build: the channel's signature, the number of components, and the size of an update.
import { useRequest } from "../../shared/request";
import { api, type Schemas } from "../api";
import type { Offer } from "./get_product";
import { statementOf } from "./provenance";

export interface BuildFacts {
  /** The statement that names this version; null if the newest signed version of the channel is another one, undefined if that
   *  is not known. */
  signed: Schemas["ChannelState"] | null | undefined;
  /** The number of listed components; null if the build lists none, "owners" if only owners may read the list, undefined if that
   *  is not known. */
  components: number | "owners" | null | undefined;
}

const NOTHING: BuildFacts = { signed: null, components: null };

/** The prepared update to the file's build from an earlier version, if there is one. */
export function updateTo(release: Schemas["Release"] | undefined, file: Schemas["Artifact"] | undefined): Schemas["UpdateSize"] | undefined {
  return file && release?.updates?.find((update) => update.platform === file.platform);
}

/** The facts about the offered build; null until they are known. Those of another channel or version are never returned. */
export function useBuildFacts(product: { id: string }, { release, channel, isOwned, file, files }: Offer): BuildFacts | null {
  const version = release?.version ?? "";
  const firstFile = file ?? files[0];
  const build = `${product.id} ${channel} ${version}`;
  const factsRequest = useRequest(
    async (signal) => {
      const request = { product, channel, version, file: firstFile };
      return { build, facts: version ? await readBuild(request, signal) : NOTHING };
    },
    [product.id, channel, version, firstFile?.id, isOwned],
    { keepsPrevious: true },
  );
  return factsRequest.state === "loaded" && factsRequest.value.build === build ? factsRequest.value.facts : null;
}

interface Wanted {
  product: { id: string };
  channel: string;
  version: string;
  file: Schemas["Artifact"] | undefined;
}

/** Load the facts in one request. */
async function readBuild({ product, channel, version, file }: Wanted, signal: AbortSignal): Promise<BuildFacts> {
  const at = `/products/${product.id}`;
  const release = `${at}/releases/${encodeURIComponent(version)}`;
  const platform: Record<string, string> = file?.platform ? { platform: file.platform } : {};
  const paths = [`${at}/channels/${channel}`, `${release}/sbom?${new URLSearchParams(platform)}`];
  const operations = paths.map((path) => ({ method: "GET" as const, path, body: null, headers: null }));
  const { results } = (await api.post("/api/v1/batch", { body: { operations, mode: "parallel" }, signal })).value;
  const [signed, bill] = results;
  return {
    signed: signedOf(signed, version),
    components: componentsOf(bill),
  };
}

interface Result {
  status: number;
  body?: unknown;
}

function signedOf(result: Result | undefined, version: string): BuildFacts["signed"] {
  if (result?.status !== 200) {
    return result?.status === 404 ? null : undefined;
  }
  const state = result.body as Schemas["ChannelState"];
  return statementOf(state.statement).version === version ? state : null;
}

function componentsOf(result: Result | undefined): BuildFacts["components"] {
  if (result?.status === 401 || result?.status === 403) {
    return "owners";
  }
  if (result?.status !== 200) {
    return result?.status === 404 ? null : undefined;
  }
  const { components } = result.body as { components?: unknown };
  return Array.isArray(components) ? components.length : null;
}
