// The parts of overview pages: a panel with a heading, and a tile with a figure.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Icon, type IconName } from "../../shared/components/icon";
import { number } from "../../shared/i18n";
import { WaitingBadge } from "../shell/sidebar";
import "./widgets.css";

let widgetCount = 0;

/** A unique id for a panel. `useId` is not unique here, because its numbers restart when its root is rendered again. */
function newId(): string {
  widgetCount += 1;
  return `widget-${widgetCount}`;
}

interface WidgetProps {
  title: string;
  /** The total number. */
  count?: number | undefined;
  /** The number of records that wait for approval. */
  waiting?: number;
  link?: { href: string; label: string } | undefined;
  /** Shown at the right of the heading instead of a link. */
  end?: ComponentChildren;
  /** Shown beside the heading. */
  beside?: ComponentChildren;
  size?: string;
  children: ComponentChildren;
}

export function Widget({ title, count, waiting = 0, link, end, beside, size, children }: WidgetProps) {
  const [id] = useState(newId);
  return (
    <section class={size ? `widget ${size}` : "widget"} aria-labelledby={id}>
      <header class="widget-head">
        <h2 id={id}>{title}</h2>
        {count !== undefined && <span class="quiet num">{number(count)}</span>}
        {waiting > 0 && <WaitingBadge count={waiting} />}
        {beside}
        {link && <a href={link.href}>{link.label}</a>}
        {end}
      </header>
      {children}
    </section>
  );
}

interface FigureProps {
  label: string;
  value: string;
  note?: ComponentChildren;
  icon?: IconName;
  /** Whether an approval is due: a dot replaces the icon. */
  isDue?: boolean;
  href?: string | undefined;
}

/** A figure with a link to what it counts. */
export function KeyFigure({ label, value, note, icon, isDue = false, href }: FigureProps) {
  return (
    <div class="tile">
      <p class="tile-label">
        {isDue ? <span class="due-dot" /> : icon && <Icon name={icon} />}
        {href ? <a href={href}>{label}</a> : label}
      </p>
      <p class="tile-value">{value}</p>
      <p class="tile-note">{note}</p>
    </div>
  );
}
