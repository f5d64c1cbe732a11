// The list that is shown as a curl command.
import { showToast } from "../../shared/toast";
import type { Model } from "../api";
import { translator } from "../../shared/i18n";

const tCommon = translator("common");

const FIRST = 100;

/** A call for curl; the token is read from the environment, since the page knows none. */
export function curlCommand(model: Model, about: string): string {
  const body = JSON.stringify({ ...(JSON.parse(about) as object), limit: FIRST }).replaceAll("'", "'\\''");
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
