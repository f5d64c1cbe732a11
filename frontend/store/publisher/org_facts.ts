// An organisation's name, and how many products, members and API clients it has, for the frame of its pages.
import { useRequest } from "../../shared/request";
import { api } from "../api";

export interface OrgFacts {
  name: string;
  /** Only owners may read them. */
  counts?: { products: number; members: number; clients: number };
}

/** The last answers, shown at once when another page of the area is opened. */
const last = new Map<string, OrgFacts>();

/** The facts of an organisation; until they are known, and where they cannot be read, its slug is its name. */
export function useOrgFacts(org: string, isOwner: boolean): OrgFacts {
  const found = useRequest((signal) => fetchFacts(org, isOwner, signal), [org, isOwner]);
  if (found.state === "loaded") {
    last.set(org, found.value);
  }
  return last.get(org) ?? { name: org };
}

async function fetchFacts(org: string, isOwner: boolean, signal: AbortSignal): Promise<OrgFacts> {
  const query = { org };
  if (!isOwner) {
    const { items } = (await api.get("/api/v1/products", { query: { ...query, limit: 1 }, signal })).value;
    return { name: items[0]?.publisher?.name ?? org };
  }
  const [profile, usage] = await Promise.all([api.get("/api/v1/org", { query, signal }), api.get("/api/v1/org/usage", { query, signal })]);
  return { name: profile.value.name, counts: usage.value };
}
