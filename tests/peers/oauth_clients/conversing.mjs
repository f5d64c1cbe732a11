// How a client here is told what to do, sends a person to the store, and tells what it saw.
import { createInterface } from "node:readline";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export const known = JSON.parse(process.argv[2]);
export const scope = "read:library";

export async function allowed(address) {
  process.stdout.write(JSON.stringify({ open: address }) + "\n");
  return new URL((await lines.next()).value);
}

export function tell(seen) {
  process.stdout.write(JSON.stringify({ seen }) + "\n", () => process.exit(0));
}
