// How a client script gets its input, sends a person to the store, and prints its results.
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export const known = JSON.parse(process.argv[2]);
export const scope = "read:library";

export async function sendPersonTo(address) {
  process.stdout.write(JSON.stringify({ open: address }) + "\n");
  return new URL((await lines.next()).value);
}

export function tell(seen) {
  process.stdout.write(JSON.stringify({ seen }) + "\n", () => process.exit(0));
}
