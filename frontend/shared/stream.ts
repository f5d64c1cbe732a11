// Server-sent events over fetch. Unlike EventSource, it sends the session mark and can read error responses.
import { signal, type Signal } from "@preact/signals";
import { Problem } from "./problem";
import { reportUnreachable, waitUntilReachable } from "./connectivity";

export interface Event {
  id: string;
  name: string;
  data: string;
}

export interface Stream {
  /** "open", or the reason for which no events arrive. */
  state: Signal<"opening" | "open" | "reconnecting" | "ended">;
  close: () => void;
}

const MAX_WAIT_MS = 4000;

/** Read events until `close`. After an interruption it reconnects and continues after the last event (Last-Event-ID).
 *  An error response ends the stream and is passed to `onRefusal`; after 429 and 503 it waits and reconnects. */
export function stream(address: string, onEvent: (event: Event) => void, onRefusal: (problem: Problem) => void): Stream {
  const state: Stream["state"] = signal("opening");
  const controller = new AbortController();
  void keepReading(address, state, controller.signal, onEvent, onRefusal);
  return { state, close: () => controller.abort() };
}

async function keepReading(
  address: string,
  state: Stream["state"],
  signal: AbortSignal,
  onEvent: (event: Event) => void,
  onRefusal: (problem: Problem) => void,
): Promise<void> {
  let lastId = "";
  let wait_ms = 500;
  while (!signal.aborted) {
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (lastId) {
        headers["Last-Event-ID"] = lastId;
      }
      const answer = await fetch(address, { headers, signal: signal, cache: "no-store" }).catch((error: unknown) => {
        if (!signal.aborted) {
          reportUnreachable();
        }
        throw error;
      });
      if (answer.status === 204) {
        break;
      }
      if (!answer.ok || !answer.body) {
        const problem = await Problem.of(answer);
        if (answer.status !== 429 && answer.status < 500) {
          onRefusal(problem);
          break;
        }
        wait_ms = Math.max(wait_ms, (problem.retryAfterS ?? 0) * 1000);
      } else {
        state.value = "open";
        for await (const event of readEvents(answer.body)) {
          lastId = event.id || lastId;
          wait_ms = 500;
          if (event.data) {
            onEvent(event);
          }
        }
      }
    } catch (error) {
      if (signal.aborted) {
        break;
      }
      // Reconnect, whatever interrupted the connection.
      console.debug("stream", error);
    }
    if (!signal.aborted) {
      state.value = "reconnecting";
      await waitUntilReachable(signal);
      await new Promise((resolve) => setTimeout(resolve, wait_ms * (0.75 + Math.random() / 2)));
      wait_ms = Math.min(wait_ms * 2, MAX_WAIT_MS);
    }
  }
  state.value = "ended";
}

/** The events in a body, until it ends. */
export async function* readEvents(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<Event> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    const blocks = (unread + value).replace(/\r\n?/g, "\n").split("\n\n");
    unread = blocks.pop() ?? "";
    for (const block of blocks) {
      yield parseEvent(block);
    }
  }
}

/** One event (HTML standard, 9.2.6); comments and unknown fields are ignored. */
export function parseEvent(block: string): Event {
  const event: Event = { id: "", name: "message", data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name === "data") {
      data.push(value ?? "");
    } else if (name === "id") {
      event.id = value ?? "";
    } else if (name === "event") {
      event.name = value ?? "";
    }
  }
  return { ...event, data: data.join("\n") };
}
