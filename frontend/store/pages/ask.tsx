// Answers a question from the catalog, and shows how it was understood. The address contains the question.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { send, urlFor } from "../../shared/client";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { TextField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { FailureNotice, Loading } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { query, setQuery } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import type { Schemas } from "../api";
import { Reply, Results, titles, type AskAnswer } from "../ask/answer";
import { Chips } from "../ask/chips";
import { asText, conditions, type Conditions } from "../ask/filter";
import { Curl } from "../curl";
import { SearchMode } from "../search_mode";
import { translator } from "../../shared/i18n";
import "../store.css";
import "../ask/ask.css";

const tCommon = translator("common");
const t = translator("ask");
const tStore = translator("store");

interface State {
  state: "idle" | "coming" | "answered" | "stopped" | Problem;
  /** The last answer, kept until the next one arrives. */
  answer: AskAnswer | null;
  /** The question it answers. */
  question: string;
  conditions: Conditions;
}

const OFFERED = ["offer.1", "offer.2", "offer.3", "offer.4"] as const;
const MAX_EARLIER_LINES = 5;
const MAX_EARLIER_LENGTH = 1000;
const MAX_ANNOUNCED_LENGTH = 300;
const QUICK_MS = 300;
const IDLE: State = { state: "idle", answer: null, question: "", conditions: [] };

const input = () => document.getElementById("query");

export function Ask() {
  const currentQuestion = query.value.get("q") ?? query.value.get("query") ?? "";
  const previousQuestions = query.value.get("prev") ?? "";
  const [typed, setTyped] = useState(currentQuestion);
  const [round, setRound] = useState(0);
  const [now, setNow] = useState(IDLE);
  const [news, setNews] = useState("");
  const running = useRef<AbortController | null>(null);
  const droppedCondition = useRef("");
  const focus = useRef<HTMLDivElement>(null);
  const isPressed = useRef(false);
  const go = (q: string, prev: readonly string[] = []) => setQuery({ q, prev: prev.join("\n"), query: "" }, { replaces: false });

  useEffect(() => {
    setTyped(currentQuestion);
    if (!currentQuestion.trim()) {
      setNow(IDLE);
      setNews("");
      return undefined;
    }
    const controller = new AbortController();
    let isLeft = false;
    const end = (changes: Partial<State>, newsText: string) => {
      if (!isLeft) {
        setNow((last) => ({ ...last, ...changes }));
        setNews(newsText.trim());
        droppedCondition.current = "";
      }
    };
    running.current = controller;
    setNow((last) => ({ ...last, state: "coming" }));
    request(currentQuestion, previousQuestions, controller.signal).then(
      (answer) => {
        const newsText = `${droppedCondition.current} ${t(`status.${answer.status}`)}: ${answer.answer.slice(0, MAX_ANNOUNCED_LENGTH)}`;
        end({ state: "answered", answer, question: currentQuestion, conditions: conditions(answer.query) }, newsText);
      },
      (error: unknown) => {
        const isStopped = controller.signal.aborted;
        end({ state: isStopped ? "stopped" : Problem.from(error) }, isStopped ? t("status.stopped") : "");
      },
    );
    return () => {
      isLeft = true;
      controller.abort();
    };
  }, [currentQuestion, previousQuestions, round]);
  useLayoutEffect(() => registerShortcut({ key: "/", does: tCommon("keyboard.search"), run: () => input()?.focus() }), []);
  useLayoutEffect(() => {
    // The pressed button may be gone: focus the answer.
    if (isPressed.current && now.state !== "coming") {
      isPressed.current = false;
      focus.current?.focus();
    }
  }, [now.state]);

  const restart = () => setRound(round + 1);
  const answered = answeredQuestions(previousQuestions, currentQuestion, now);
  const submit = (question: string) => {
    if (question.trim() === currentQuestion) {
      restart();
    } else if (question.trim()) {
      go(question.trim(), answered);
    }
  };
  const change = (next: Conditions, condition?: string) => {
    droppedCondition.current = condition ? t("dropped", { condition }) : "";
    const text = asText(next);
    if (!text) {
      over();
      return;
    }
    setNow({ ...now, conditions: next });
    go(text);
  };
  const over = () => {
    go("");
    input()?.focus();
  };
  const suggest = (question: string) => {
    isPressed.current = true;
    go(question);
  };
  const isComing = now.state === "coming";
  const isSlow = useSlow(isComing);
  const isThere = now.answer !== null && (isComing || now.state === "answered");
  return (
    <div class="stack ask">
      <Heading title={tStore("ask")}>
        <SearchMode current="question" text={typed} />
      </Heading>
      <form class="ask-box" role="search" onSubmit={(event) => (event.preventDefault(), submit(typed))}>
        <Icon name="sparkles" />
        <TextField
          name="query"
          label={t("label")}
          help={t("help")}
          value={typed}
          maxLength={2000}
          autocomplete="off"
          onInput={(event) => setTyped(event.currentTarget.value)}
          wide
        />
        {isSlow && <Button onClick={() => (running.current?.abort(), input()?.focus())}>{t("stop")}</Button>}
        <Button type="submit" variant="strong">
          {t("do")}
        </Button>
      </form>
      {currentQuestion && <Thread before={previousQuestions} hasAnswer={answered.length > lines(previousQuestions).length} onOver={over} />}
      <p class="hidden-text" role="status">
        {news}
      </p>
      {now.conditions.length > 0 && <Chips conditions={now.conditions} titles={titles(now.answer)} onChange={change} />}
      <div class={isComing && now.answer ? "stack is-stale" : "stack"} role="group" aria-label={t("answer")} aria-busy={isComing} tabIndex={-1} ref={focus}>
        {isSlow && !now.answer && <Loading />}
        {now.state === "stopped" && <StoppedNotice onAgain={restart} />}
        {now.state instanceof Problem && <FailureNotice problem={now.state} onRetry={restart} />}
        {isThere && now.answer && (
          <>
            <Reply answer={now.answer} question={now.question} />
            <Offers answer={now.answer} isNew={false} onAsk={suggest} />
            <Results answer={now.answer} titles={titles(now.answer)} />
          </>
        )}
      </div>
      {!isThere && <Offers answer={null} isNew={!currentQuestion} onAsk={suggest} />}
      {isThere && (
        <div class="row">
          <Curl method="POST" path="/api/v1/ask" body={body(currentQuestion, previousQuestions)} isOpen />
        </div>
      )}
    </div>
  );
}

/** Whether loading takes so long that the page shows it. */
function useSlow(isComing: boolean): boolean {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(isComing), isComing ? QUICK_MS : 0);
    return () => clearTimeout(timer);
  }, [isComing]);
  return isComing && isSlow;
}

async function request(question: string, previousQuestions: string, signal: AbortSignal): Promise<AskAnswer> {
  const answer = await send("POST", "/api/v1/ask", { body: body(question, previousQuestions), signal });
  return (await answer.json()) as AskAnswer;
}

const lines = (text: string) => text.split("\n").filter(Boolean);

const body = (question: string, previousQuestions: string): Partial<Schemas["AskBody"]> => ({
  query: question,
  ...(previousQuestions && { prev: lines(previousQuestions) }),
});

/** The answered questions, oldest first, to which a follow-up can refer. */
function answeredQuestions(previousQuestions: string, currentQuestion: string, { answer, question, state }: State): readonly string[] {
  const isRead = state === "answered" && question === currentQuestion && answer?.status !== "refused";
  const all = [...lines(previousQuestions), ...(isRead ? [currentQuestion] : [])].slice(-MAX_EARLIER_LINES);
  while (all.join("\n").length > MAX_EARLIER_LENGTH) {
    all.shift();
  }
  return all;
}

/** Links to the previous questions, and a button that starts over. */
function Thread({ before, hasAnswer, onOver }: { before: string; hasAnswer: boolean; onOver: () => void }) {
  const all = lines(before);
  const address = (place: number) => urlFor("/questions", {}, { q: all[place], prev: all.slice(0, place).join("\n") });
  return (
    <div class="row small thread">
      {all.length ? (
        <ol aria-label={t("earlier")}>
          {all.map((product, place) => (
            <li key={place}>
              <a href={address(place)} lang="en">
                {product}
              </a>
            </li>
          ))}
        </ol>
      ) : (
        hasAnswer && <span class="quiet">{t("onward")}</span>
      )}
      <Button tight onClick={onOver}>
        {t("over")}
      </Button>
    </div>
  );
}

function StoppedNotice({ onAgain }: { onAgain: () => void }) {
  return (
    <div class="answer row">
      <Chip>{t("status.stopped")}</Chip>
      <Button tight onClick={onAgain}>
        {t("again")}
      </Button>
    </div>
  );
}

/** Suggested questions: those of the answer, or else some that the catalog can always answer. */
function Offers({ answer, isNew, onAsk }: { answer: AskAnswer | null; isNew: boolean; onAsk: (question: string) => void }): ComponentChildren {
  const isEmpty = isNew || (answer?.status === "refused" && !answer.suggestions.length);
  const questions = isEmpty ? OFFERED.map((question) => t(question)) : (answer?.suggestions ?? []);
  return (
    questions.length > 0 && (
      <section class="offers" aria-labelledby="offers">
        <h2 id="offers" class="small quiet">
          {t("offers")}
        </h2>
        <div class="row">
          {questions.map((question) => (
            // Questions are English in every language of the page.
            <Button key={question} tight onClick={() => onAsk(question)} lang="en">
              {question}
            </Button>
          ))}
        </div>
      </section>
    )
  );
}
