// Redeems one or many codes, in any spelling, one per line. Each code gets its own answer.
import { useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Field } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { SignInAgain } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { plural, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { CoverImage } from "../card";
import { Curl } from "../curl";
import { RequireSignIn } from "../require_sign_in";
import { ownedIds } from "../owned_and_followed";
import { ownedProductIds } from "../ownership";
import "../store.css";

const tCommon = translator("common");
const t = translator("store");

type Product = Schemas["Product"];

interface Line {
  code: string;
  state: "waiting" | "redeemed" | "before" | "owned" | Problem;
  products: readonly Product[];
}

/** An attempt to redeem a code: its Idempotency-Key, and what the person owned before the first attempt. */
interface Try {
  key: string;
  had: ReadonlySet<string>;
}

const MAX_CODES = 200;
/** The key under which this tab stores codes until they are redeemed: from a link (#code=…, as in a QR code) or typed. They
 *  survive a reload and the next sign-in. */
const CODE_KEY = "countersign-code";

function keep(text: string): void {
  if (text.trim()) {
    sessionStorage.setItem(CODE_KEY, text);
  } else {
    sessionStorage.removeItem(CODE_KEY);
  }
}

export function Redeem() {
  // Read it before the redirect to the sign-in page, which drops the fragment. Browsers do not send fragments to servers.
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    sessionStorage.setItem(CODE_KEY, code);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return (
    <div class="redeem">
      <Heading title={t("redeem")} />
      <RequireSignIn {...(sessionStorage.getItem(CODE_KEY) ? { text: t("redeem.kept") } : {})}>
        <Box />
      </RequireSignIn>
    </div>
  );
}

/** The different codes in a pasted text, in normalized form. */
export function codesIn(text: string): string[] {
  const codesByBareText = new Map<string, string>();
  for (const line of text.split(/[\n,;]+/)) {
    const code = line.trim().toUpperCase().replace(/\s+/g, " ");
    const bare = code.replace(/[^A-Z0-9]/g, "");
    if (code) {
      codesByBareText.set(bare || code, codesByBareText.get(bare || code) ?? code);
    }
  }
  return [...codesByBareText.values()];
}

function Box() {
  const [text, setText] = useState(() => sessionStorage.getItem(CODE_KEY) ?? "");
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [isBusy, setBusy] = useState(false);
  /** Each code keeps its Idempotency-Key, so that a repeated attempt gets the first answer. */
  const tries = useRef(new Map<string, Try>());
  const codes = codesIn(text);
  const redeem = async () => {
    if (isBusy || !codes.length) {
      return;
    }
    setBusy(true);
    let newLines: Line[] = codes.slice(0, MAX_CODES).map((code) => ({ code, state: "waiting", products: [] }));
    setLines(newLines);
    const had = newLines.every((entry) => tries.current.has(entry.code)) ? new Set<string>() : await library();
    for (const [place, { code }] of newLines.entries()) {
      const tried = tries.current.get(code) ?? { key: crypto.randomUUID(), had };
      tries.current.set(code, tried);
      const line = await one(code, tried);
      newLines = newLines.map((entry, at) => (at === place ? line : entry));
      setLines(newLines);
      if (line.state instanceof Problem && isTemporary(line.state)) {
        const why = line.state;
        setLines(newLines.map((entry) => (entry.state === "waiting" ? { ...entry, state: why } : entry)));
        break;
      }
    }
    // Keep the codes that can be tried again unchanged.
    keep(newLines.filter(({ state }) => state === "waiting" || (state instanceof Problem && isTemporary(state))).map((entry) => entry.code).join("\n"));
    setBusy(false);
  };
  return (
    <div class="stack">
      <form
        class="form panel-box"
        onSubmit={(event) => {
          event.preventDefault();
          void redeem();
        }}
      >
        <Field name="code" label={t("redeem.code")} help={t("redeem.help")} required wide>
          {(controlAttributes) => (
            <textarea
              {...controlAttributes}
              rows={3}
              value={text}
              autocomplete="off"
              autocapitalize="characters"
              spellcheck={false}
              onInput={(event) => {
                keep(event.currentTarget.value);
                setText(event.currentTarget.value);
              }}
            />
          )}
        </Field>
        <div class="row">
          <Button type="submit" variant="strong" size="large" busy={isBusy}>
            <Icon name="ticket" />
            {codes.length > 1 ? plural(Math.min(MAX_CODES, codes.length), t("redeem"), t("redeem.many")) : t("redeem.do")}
          </Button>
          {codes[0] && <Curl method="POST" path="/api/v1/redeem" body={{ code: codes[0] }} />}
        </div>
        {codes.length > MAX_CODES && <p class="notice">{t("redeem.most", { n: MAX_CODES })}</p>}
      </form>
      <div aria-live="polite">
        {lines.length > 0 && (
          <ul class="results" aria-label={t("redeem.results")}>
            {lines.map((line) => (
              <Result key={line.code} line={line} />
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}

/** Whether the error is not about the code: too many requests, no network, no session, or an unavailable server. */
function isTemporary({ status }: Problem): boolean {
  return status === 0 || status === 401 || status === 429 || status >= 500;
}

function Result({ line }: { line: Line }) {
  const { state } = line;
  return (
    <li>
      <code>{line.code}</code>
      {state === "waiting" && <span class="quiet">{tCommon("loading")}…</span>}
      {state === "redeemed" && <Chip tone="good">{t("redeem.new")}</Chip>}
      {state === "before" && <Chip>{t("redeem.before")}</Chip>}
      {state === "owned" && <Chip>{t("redeem.owned")}</Chip>}
      {state instanceof Problem && (
        <span>
          <Chip tone="bad">{t(faultOf(state.code))}</Chip> {state.resolution || state.message}{" "}
          {state.retryAfterS !== null && tCommon("wait", { seconds: state.retryAfterS })}
          <SignInAgain problem={state} />
        </span>
      )}
      {line.products.map((product) => (
        <span key={product.id} class="redeemed">
          <CoverImage product={product} sizes="96px" />
          <a href={`/products/${product.slug}`}>{product.title}</a>
        </span>
      ))}
    </li>
  );
}

function faultOf(code: string) {
  const textIds = {
    code_not_found: "redeem.unknown",
    code_already_redeemed: "redeem.used",
    code_expired: "redeem.expired",
    code_revoked: "redeem.revoked",
    rate_limit_exceeded: "redeem.later",
  } as const;
  return code in textIds ? textIds[code as keyof typeof textIds] : "redeem.failed";
}

/** The ids of the owned products; empty if they cannot be loaded, so that redeeming still works. */
async function library(): Promise<ReadonlySet<string>> {
  const all = new Set<string>();
  try {
    for await (const ids of ownedProductIds()) {
      ids.forEach((id) => all.add(id));
    }
  } catch {
    return new Set();
  }
  return all;
}

async function one(code: string, { key, had }: Try): Promise<Line> {
  try {
    const { value } = await api.post("/api/v1/redeem", { body: { code }, headers: { "Idempotency-Key": key } });
    const ids = value.products.length ? value.products : [value.product_id];
    ownedIds.value = new Set([...ownedIds.peek(), ...ids]);
    const products = await Promise.all(ids.map(async (id) => (await api.get("/api/v1/products/{id}", { values: { id } })).value));
    // A repeated code gets the first answer; a new code for owned products gets `already_owned`.
    const isOld = ids.every((id) => had.has(id));
    return { code, state: value.already_owned ? "owned" : isOld ? "before" : "redeemed", products };
  } catch (error) {
    return { code, state: error instanceof Problem ? error : new Problem(0, { detail: String(error) }), products: [] };
  }
}
