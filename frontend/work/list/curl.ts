// Builds a curl command for the current list.
import { showToast } from "../../shared/toast";
import type { Model } from "../api";
import { translator } from "../../shared/i18n";

const tCommon = translator("common");

const LIMIT = 100;

/** The curl command. It reads the token from the environment, because the page has no token. */
export function curlCommand(model: Model, search: string): string {
  const body = JSON.stringify({ ...(JSON.parse(search) as object), limit: LIMIT }).replaceAll("'", "'\\''");
  return [
    `curl -X POST '${location.origin}/api/${model.name}/search' \\`,
    `  -H "Authorization: Bearer $COUNTERSIGN_TOKEN" -H 'Content-Type: application/json' \\`,
    `  -d '${body}'`,
  ].join("\n");
}

export async function copyText(text: string): Promise<void> {
  await navigator.clipboard.writeText(text).then(
    () => showToast(tCommon("copied")),
    () => showToast(tCommon("copied.not")),
  );
}
