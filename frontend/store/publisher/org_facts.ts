// The name of an organisation, and its numbers of products, members and API clients.
import { useRequest } from "../../shared/request";
import { api } from "../api";

export interface OrgFacts {
  name: string;
  /** Undefined unless the person is an owner. */
  counts?: { products: number; members: number; clients: number };
}

/** The last facts, shown at once when another page of the area is opened. */
const lastFacts = new Map<string, OrgFacts>();

/** The facts of an organisation. Until they are loaded, the slug is used as the name. */
export function useOrgFacts(org: string, isOwner: boolean): OrgFacts {
  const request = useRequest((signal) => fetchFacts(org, isOwner, signal), [org, isOwner]);
  if (request.state === "loaded") {
    lastFacts.set(org, request.value);
  }
  return lastFacts.get(org) ?? { name: org };
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
