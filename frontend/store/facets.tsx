// The filters of the list: their values with the number of products, and the chosen values.
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
export const COUNTED_FACETS = "kind,platform,access,since,tag";
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
  const newQuery = new URLSearchParams(query.value);
  if (value) {
    newQuery.set(name, value);
  } else {
    newQuery.delete(name);
  }
  return newQuery.size ? `/browse?${newQuery}` : "/browse";
}

type Counts = Record<string, number>;

function countsOf(list: Schemas["ProductList"] | null, facet: string): Counts | null {
  const counts = list?.facets?.[facet];
  return counts ? Object.fromEntries(counts.map(({ value, count }) => [value, count])) : null;
}

/** The column of filters, without counts until the list is loaded. */
export function Facets({ list }: { list: Schemas["ProductList"] | null }) {
  const kinds = countsOf(list, "kind");
  const platforms = countsOf(list, "platform");
  const access = countsOf(list, "access");
  const sinceCounts = countsOf(list, "since");
  const tags = countsOf(list, "tag");
  const chosenTag = query.value.get("tag") ?? "";
  const total = kinds && Object.values(kinds).reduce((sum, kind) => sum + kind, 0);
  return (
    <div class="facets">
      <Group title={t("kind")}>
        <Option name="kind" value="" label={t("all.kinds")} count={total} isOne />
        {KINDS.map((kind) => (
          <Option key={kind} name="kind" value={kind} label={t(`kinds.${kind}`)} count={kinds?.[kind]} isOne />
        ))}
      </Group>
      <Group title={t("platform")}>
        {(Object.keys(PLATFORMS) as Platform[]).map((platform) => (
          <Option key={platform} name="platform" value={platform} label={PLATFORMS[platform]} count={platforms?.[platform]} mark={<PlatformMark platform={platform} />} />
        ))}
      </Group>
      <Group title={t("access")}>
        {ACCESS.map((accessName) => (
          <Option key={accessName} name="access" value={accessName} label={t(accessName)} count={access?.[accessName]} />
        ))}
      </Group>
      <Group title={t("published_since")}>
        <Option name="published_since" value="" label={t("since.any")} isOne />
        {DAYS.map((days) => (
          <Option key={days} name="published_since" value={dayBefore(days)} label={t(`since.${days}`)} count={sinceCounts?.[`${days}d`]} isOne />
        ))}
      </Group>
      {tags && Object.keys(tags).length > 0 && (
        <Group title={t("tags")}>
          {[...new Set([...Object.keys(tags).slice(0, 8), ...(chosenTag ? [chosenTag] : [])])].map((tag) => (
            <Option key={tag} name="tag" value={tag} label={tag} count={tags[tag]} />
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
  if (name === "kind" && KINDS.some((kind) => kind === value)) {
    return t(`kinds.${value as "game"}`);
  }
  if (name === "platform" && value in PLATFORMS) {
    return PLATFORMS[value as Platform];
  }
  if (name === "access" && ACCESS.some((access) => access === value)) {
    return t(value as "free");
  }
  if (name === "published_since") {
    const days = DAYS.find((day) => dayBefore(day) === value);
    return days ? t(`since.${days}`) : t("since.day", { day: Number.isNaN(Date.parse(value)) ? value : date(value) });
  }
  if (name === "channel" && CHANNELS.some((channel) => channel === value)) {
    return t(`channel.${value as "stable"}`);
  }
  return value;
}

/** The chosen filters, each a link to the list without it. */
export function Tokens() {
  const chosenFilters = FACETS.flatMap((name) => {
    const value = query.value.get(name);
    return value && name !== "q" && name !== "sort" ? [[name, value] as const] : [];
  });
  if (!chosenFilters.length) {
    return null;
  }
  const searchText = query.value.get("q");
  return (
    <>
      <ul class="tokens" aria-label={t("chosen")}>
        {chosenFilters.map(([name, value]) => (
          <li key={name}>
            <a class="token" href={addressWith(name, "")}>
              {wordsOf(name, value)}
              <Icon name="x" size="s" />
              <span class="hidden-text">{t("chosen.drop")}</span>
            </a>
          </li>
        ))}
      </ul>
      <a href={searchText ? `/browse?q=${encodeURIComponent(searchText)}` : "/browse"}>{t("none.clear")}</a>
    </>
  );
}
