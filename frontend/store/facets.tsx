// The filters of the list: their values with the number of products, and the chosen ones.
import type { ComponentChildren } from "preact";
import { Icon } from "../shared/components/icon";
import { query } from "../shared/router";
import { date, number, translator } from "../shared/i18n";
import type { Schemas } from "./api";
import { PlatformMark } from "./platform_marks";
import { PLATFORMS, type Platform } from "./platform";

const t = translator("store");

/** The parameters of the list, in the order that the server uses, so that its embedded reply is found. */
export const FACETS = ["q", "kind", "platform", "org", "tag", "channel", "access", "published_since", "sort"] as const;
export const COUNTED = "kind,platform,access,since,tag";
type Facet = (typeof FACETS)[number];

const KINDS = ["game", "app", "tool"] as const;
const ACCESS = ["free", "entitled"] as const;
const CHANNELS = ["stable", "beta", "nightly", "alpha"] as const;
const DAYS = [7, 30, 365] as const;
const DAY_MS = 86_400_000;

/** The date (UTC) this many days before today. A date in the address keeps its meaning when it is opened later. */
export function dayBefore(days: number): string {
  return new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
}

/** The address of the list with this parameter changed. */
function addressWith(name: Facet, value: string): string {
  const next = new URLSearchParams(query.value);
  if (value) {
    next.set(name, value);
  } else {
    next.delete(name);
  }
  return next.size ? `/browse?${next}` : "/browse";
}

type Counts = Record<string, number>;

function countsOf(list: Schemas["ProductList"] | null, facet: string): Counts | null {
  const found = list?.facets?.[facet];
  return found ? Object.fromEntries(found.map(({ value, count }) => [value, count])) : null;
}

/** The column of filters, without counts until the list is loaded. */
export function Facets({ list }: { list: Schemas["ProductList"] | null }) {
  const kinds = countsOf(list, "kind");
  const platforms = countsOf(list, "platform");
  const access = countsOf(list, "access");
  const since = countsOf(list, "since");
  const tags = countsOf(list, "tag");
  const chosenTag = query.value.get("tag") ?? "";
  const all = kinds && Object.values(kinds).reduce((sum, each) => sum + each, 0);
  return (
    <div class="facets">
      <Group title={t("kind")}>
        <Option name="kind" value="" label={t("all.kinds")} count={all} isOne />
        {KINDS.map((each) => (
          <Option key={each} name="kind" value={each} label={t(`kinds.${each}`)} count={kinds?.[each]} isOne />
        ))}
      </Group>
      <Group title={t("platform")}>
        {(Object.keys(PLATFORMS) as Platform[]).map((each) => (
          <Option key={each} name="platform" value={each} label={PLATFORMS[each]} count={platforms?.[each]} mark={<PlatformMark platform={each} />} />
        ))}
      </Group>
      <Group title={t("access")}>
        {ACCESS.map((each) => (
          <Option key={each} name="access" value={each} label={t(each)} count={access?.[each]} />
        ))}
      </Group>
      <Group title={t("published_since")}>
        <Option name="published_since" value="" label={t("since.any")} isOne />
        {DAYS.map((each) => (
          <Option key={each} name="published_since" value={dayBefore(each)} label={t(`since.${each}`)} count={since?.[`${each}d`]} isOne />
        ))}
      </Group>
      {tags && Object.keys(tags).length > 0 && (
        <Group title={t("tags")}>
          {[...new Set([...Object.keys(tags).slice(0, 8), ...(chosenTag ? [chosenTag] : [])])].map((each) => (
            <Option key={each} name="tag" value={each} label={each} count={tags[each]} />
          ))}
        </Group>
      )}
    </div>
  );
}

function Group({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <ul>{children}</ul>
    </section>
  );
}

interface OptionProps {
  name: Facet;
  value: string;
  label: string;
  count?: number | null | undefined;
  mark?: ComponentChildren;
  /** Whether exactly one value is chosen, like radio buttons. Otherwise, choosing a value again removes it. */
  isOne?: boolean;
}

function Option({ name, value, label, count, mark, isOne = false }: OptionProps) {
  const isChosen = (query.value.get(name) ?? "") === value;
  return (
    <li>
      <a
        href={addressWith(name, isChosen && !isOne ? "" : value)}
        class={count === 0 && !isChosen ? "facet empty" : "facet"}
        aria-current={isChosen ? "true" : undefined}
      >
        <span class={isOne ? "box one" : "box"} />
        {/* The name is read aloud already. */}
        {mark && <span aria-hidden="true">{mark}</span>}
        {label}
        {count !== undefined && count !== null && <span class="count">{number(count)}</span>}
      </a>
    </li>
  );
}

/** The label of a filter's value. */
function wordsOf(name: Facet, value: string): string {
  if (name === "kind" && KINDS.some((each) => each === value)) {
    return t(`kinds.${value as "game"}`);
  }
  if (name === "platform" && value in PLATFORMS) {
    return PLATFORMS[value as Platform];
  }
  if (name === "access" && ACCESS.some((each) => each === value)) {
    return t(value as "free");
  }
  if (name === "published_since") {
    const days = DAYS.find((each) => dayBefore(each) === value);
    return days ? t(`since.${days}`) : t("since.day", { day: Number.isNaN(Date.parse(value)) ? value : date(value) });
  }
  if (name === "channel" && CHANNELS.some((each) => each === value)) {
    return t(`channel.${value as "stable"}`);
  }
  return value;
}

/** The chosen filters, each a link to the list without it. */
export function Tokens() {
  const chosen = FACETS.flatMap((name) => {
    const value = query.value.get(name);
    return value && name !== "q" && name !== "sort" ? [[name, value] as const] : [];
  });
  if (!chosen.length) {
    return null;
  }
  const words = query.value.get("q");
  return (
    <>
      <ul class="tokens" aria-label={t("chosen")}>
        {chosen.map(([name, value]) => (
          <li key={name}>
            <a class="token" href={addressWith(name, "")}>
              {wordsOf(name, value)}
              <Icon name="x" size="s" />
              <span class="hidden-text">{t("chosen.drop")}</span>
            </a>
          </li>
        ))}
      </ul>
      <a href={words ? `/browse?q=${encodeURIComponent(words)}` : "/browse"}>{t("none.clear")}</a>
    </>
  );
}
