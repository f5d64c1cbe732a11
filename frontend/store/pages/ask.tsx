// A question in plain words, and an answer from the catalog alone, told as it comes, with where it is from.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { TextField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { Failed } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { ask as keep, query } from "../../shared/router";
import { say as shared } from "../../shared/say";
import { shortcut } from "../../shared/shortcuts";
import { events } from "../../shared/stream";
import { Curl } from "../curl";
import { say } from "../say";

interface Source {
  product: string;
  release: string | null;
}

interface Told {
  question: string;
  text: string;
  sources: readonly Source[];
  state: "coming" | "answered" | "refused" | "stopped" | Problem;
}

const OFFERED = ["ask.offer.1", "ask.offer.2", "ask.offer.3", "ask.offer.4"] as const;

export function Ask() {
  const [typed, setTyped] = useState(query.value.get("query") ?? query.value.get("q") ?? "");
  const [told, setTold] = useState<Told | null>(null);
  const running = useRef<AbortController | null>(null);
  const ask = async (question: string) => {
    running.current?.abort();
    if (!question.trim()) {
      return;
    }
    const controller = new AbortController();
    running.current = controller;
    setTyped(question);
    keep({ query: question, q: "" });
    await listen(question, controller.signal, (change) => {
      if (running.current === controller) {
        setTold(change);
      }
    });
  };
  useEffect(() => {
    if (typed) {
      void ask(typed);
    }
    const forget = shortcut({ key: "/", does: shared("keyboard.search"), run: () => document.getElementById("query")?.focus() });
    return () => (forget(), running.current?.abort());
  }, []);
  return (
    <div class="stack">
      <Heading title={say("ask")} />
      <form
        class="filters"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          void ask(typed);
        }}
      >
        <TextField
          name="query"
          label={say("ask.label")}
          help={say("ask.help")}
          value={typed}
          maxLength={2000}
          autocomplete="off"
          onInput={(event) => setTyped(event.currentTarget.value)}
          wide
        />
        <Button type="submit" look="strong">
          {say("ask.do")}
        </Button>
        {told?.state === "coming" && <Button onClick={() => running.current?.abort()}>{say("ask.stop")}</Button>}
      </form>
      {told && <Reply told={told} again={() => void ask(told.question)} />}
      {(!told || told.state === "refused") && <Offers told={told} onAsk={ask} />}
    </div>
  );
}

function Reply({ told, again }: { told: Told; again: () => void }) {
  if (told.state instanceof Problem) {
    return <Failed problem={told.state} again={again} />;
  }
  const isRefused = told.state === "refused";
  return (
    <section class="stack" aria-label={say("ask.answer")} aria-busy={told.state === "coming"}>
      <div class={isRefused ? "answer refused" : "answer"} aria-live={told.state === "coming" ? "off" : "polite"}>
        {isRefused && <Chip tone="warn">{say("ask.refused")}</Chip>}
        {told.state === "stopped" && <Chip>{say("ask.stopped")}</Chip>}
        {(isRefused || told.state === "stopped") && <br />}
        {told.text}
      </div>
      {told.sources.length > 0 && (
        <div class="row small">
          <span class="quiet">{say("ask.sources")}</span>
          {told.sources.map((each) => (
            <a key={`${each.product} ${each.release}`} href={`/products/${encodeURIComponent(each.product)}`}>
              {each.product} {each.release}
            </a>
          ))}
        </div>
      )}
      <div class="row">
        <Curl method="POST" path="/api/v1/ask" body={{ query: told.question }} isOpen />
      </div>
    </section>
  );
}

/** Questions to press: what the refusal itself offers, else some that the catalog always answers. */
function Offers({ told, onAsk }: { told: Told | null; onAsk: (question: string) => Promise<void> }) {
  const offered = told ? meant(told) : [];
  const questions = offered.length ? offered : OFFERED.map((each) => say(each));
  return (
    <section class="stack" aria-label={say("ask.offers")}>
      <h2>{say("ask.offers")}</h2>
      <div class="row">
        {questions.map((each) => (
          // The catalog is asked in English, whatever the page speaks.
          <Button key={each} onClick={() => void onAsk(each)} lang="en">
            {each}
          </Button>
        ))}
      </div>
    </section>
  );
}

/** The question again for each name that the refusal asks back with. */
function meant({ question, text }: Told): string[] {
  const [, name = "", names = ""] = /(?:by|called) "(.+?)"(?::|\. Did you mean) (.+)\?$/.exec(text) ?? [];
  const at = question.toLowerCase().indexOf(name.toLowerCase());
  if (!name || at < 0) {
    return [];
  }
  const asked = (each: string) => question.slice(0, at) + each + question.slice(at + name.length);
  return names.split(/, | or /).map(asked);
}

async function listen(question: string, signal: AbortSignal, tell: (told: Told) => void): Promise<void> {
  let told: Told = { question, text: "", sources: [], state: "coming" };
  const change = (changes: Partial<Told>) => tell((told = { ...told, ...changes }));
  change({});
  try {
    const headers = { Accept: "text/event-stream, application/problem+json", "Content-Type": "application/json" };
    const body = JSON.stringify({ query: question });
    const answer = await fetch("/api/v1/ask?stream=true", { method: "POST", headers, body, signal });
    if (!answer.ok || !answer.body) {
      change({ state: await Problem.of(answer) });
      return;
    }
    for await (const { name, data } of events(answer.body)) {
      const value: unknown = JSON.parse(data || "{}");
      if (name === "delta") {
        change({ text: told.text + (value as { text: string }).text });
      } else if (name === "source") {
        change({ sources: [...told.sources, value as Source] });
      } else if (name === "done") {
        const done = value as { answer: string; sources: Source[]; confidence: number };
        change({ text: done.answer, sources: done.sources, state: done.confidence > 0 ? "answered" : "refused" });
      } else if (name === "error") {
        change({ state: new Problem(0, value as Record<string, unknown>) });
      }
    }
    if (told.state === "coming") {
      change({ state: Problem.offline() });
    }
  } catch {
    change({ state: signal.aborted ? "stopped" : Problem.offline() });
  }
}
