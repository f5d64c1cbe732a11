// The store's API, typed by its own OpenAPI document.
import type { components, paths } from "../generated/store";
import { Client } from "../shared/client";

export const api = new Client<paths>();
export type Schemas = components["schemas"];
