// Uploads a file in chunks with Content-Range; after a lost connection only the missing ranges are sent again.
import { send } from "../../shared/client";
import { Problem } from "../../shared/problem";

const PART_BYTES = 4 << 20;
const MAX_TRIES = 6;
const FIRST_WAIT_MS = 500;

type Ranges = readonly (readonly [from: number, to: number])[];

/** Upload the file. Ranges that arrived before an interruption are not sent again. `onProgress` gets the number of received
 *  bytes.
 *  @throws Problem if the upload is refused, or the connection does not return. The error of an abort is passed on. */
export async function upload<Made>(address: string, file: Blob, signal: AbortSignal, onProgress: (sentBytes: number) => void): Promise<Made> {
  let failures = 0;
  for (;;) {
    try {
      const reply = await sendMissing<Made>(address, file, signal, onProgress, () => (failures = 0));
      if (reply !== null) {
        return reply;
      }
    } catch (error) {
      const isPassing = error instanceof Problem && (error.status === 0 || error.status === 429 || error.status >= 500);
      failures += 1;
      if (!isPassing || failures >= MAX_TRIES || signal.aborted) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, (error.retryAfterS ?? 0) * 1000 || FIRST_WAIT_MS * 2 ** failures));
    }
  }
}

async function sendMissing<Made>(
  address: string,
  file: Blob,
  signal: AbortSignal,
  onProgress: (sentBytes: number) => void,
  arrived: () => void,
): Promise<Made | null> {
  const { received } = (await (await send("GET", address, { signal })).json()) as { received: Ranges };
  let storedBytes = received.reduce((sum, [from, to]) => sum + to - from + 1, 0);
  onProgress(storedBytes);
  for (const [from, to] of missingRanges(received, file.size)) {
    for (let start = from; start <= to; start += PART_BYTES) {
      const end = Math.min(start + PART_BYTES - 1, to);
      const range = { "Content-Range": `bytes ${start}-${end}/${file.size}` };
      const answer = await sendPart(address, file.slice(start, end + 1), range, signal);
      arrived();
      storedBytes += end - start + 1;
      onProgress(storedBytes);
      if (answer.status === 201) {
        return (await answer.json()) as Made;
      }
    }
  }
  return null;
}

/** The missing ranges, as first and last byte. */
export function missingRanges(receivedRanges: Ranges, size: number): [number, number][] {
  const gaps: [number, number][] = [];
  let position = 0;
  for (const [from, to] of [...receivedRanges].sort((a, b) => a[0] - b[0])) {
    if (from > position) {
      gaps.push([position, from - 1]);
    }
    position = Math.max(position, to + 1);
  }
  if (position < size) {
    gaps.push([position, size - 1]);
  }
  return gaps;
}

async function sendPart(address: string, body: Blob, range: Record<string, string>, signal: AbortSignal): Promise<Response> {
  const headers = { ...range, "Content-Type": "application/octet-stream" };
  let answer: Response;
  try {
    answer = await fetch(address, { method: "PUT", body, headers, signal });
  } catch (error) {
    if (signal.aborted) {
      throw error;
    }
    throw Problem.offline();
  }
  if (!answer.ok) {
    throw await Problem.of(answer);
  }
  return answer;
}

/** The path of an address. Pages send requests only to this service. */
export function pathOf(address: string): string {
  const { pathname, search } = new URL(address, location.href);
  return pathname + search;
}
