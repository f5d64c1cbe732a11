// Markers of events on a chart: a dotted line on the day of the event, and above it a link with a short name.
import { useState } from "preact/hooks";
import { Menu } from "./components/menu";

export interface ChartMarker {
  /** The index of its day on the chart. */
  index: number;
  /** A short name, for example of a version. */
  label: string;
  /** The full description of the event. */
  title: string;
  href: string;
}

/** The height of the names of markers above a chart, in pixels. */
export const MARKER_PX = 30;
const GAP_PX = 8;
const CHARACTER_PX = 7;
const PADDING_PX = 16;
const CHEVRON_PX = 18;
const LEAD_PX = 8;

interface Group {
  x: number;
  markers: readonly ChartMarker[];
}

/** The name of several markers at one position: "3 releases". */
export type CountLabel = (count: number) => string;

function widthOf(markers: readonly ChartMarker[], countLabel: CountLabel): number {
  const chevron = markers.length > 1 ? CHEVRON_PX : 0;
  return labelOf(markers, countLabel).length * CHARACTER_PX + PADDING_PX + chevron;
}

function labelOf(markers: readonly ChartMarker[], countLabel: CountLabel): string {
  return markers.length > 1 ? countLabel(markers.length) : (markers[0]?.label ?? "");
}

/** Groups markers whose names would overlap: a group has the line of its first marker, and lists all its markers. */
export function groupMarkers(markers: readonly ChartMarker[], x: (index: number) => number, countLabel: CountLabel): Group[] {
  const groups: Group[] = [];
  for (const marker of [...markers].sort((a, b) => a.index - b.index)) {
    const lastGroup = groups.at(-1);
    const markerX = x(marker.index);
    const isNear = lastGroup && markerX - lastGroup.x < (widthOf(lastGroup.markers, countLabel) + widthOf([marker], countLabel)) / 2 + GAP_PX;
    if (isNear) {
      groups[groups.length - 1] = { x: lastGroup.x, markers: [...lastGroup.markers, marker] };
    } else {
      groups.push({ x: markerX, markers: [marker] });
    }
  }
  return groups;
}

interface Props {
  markers: readonly ChartMarker[];
  x: (index: number) => number;
  countLabel: CountLabel;
  width: number;
}

export function MarkerLines({ markers, x, countLabel, top, bottom }: Omit<Props, "width"> & { top: number; bottom: number }) {
  return (
    <>
      {groupMarkers(markers, x, countLabel).map((group) => (
        <line key={group.x} class="mark" x1={group.x} x2={group.x} y1={top - LEAD_PX} y2={bottom} />
      ))}
    </>
  );
}

export function MarkerTags({ markers, x, countLabel, width }: Props) {
  const [openIndex, setOpenIndex] = useState<number | null>(null);
  return (
    <ul class="chart-tags">
      {groupMarkers(markers, x, countLabel).map((group) => {
        const halfWidth = widthOf(group.markers, countLabel) / 2;
        const leftX = Math.min(Math.max(group.x, halfWidth), width - halfWidth);
        const titles = group.markers.map((marker) => marker.title);
        return (
          <li
            key={group.x}
            style={{ left: `${leftX}px` }}
            onPointerEnter={() => setOpenIndex(group.x)}
            onPointerLeave={() => setOpenIndex(null)}
            onFocusIn={() => setOpenIndex(group.x)}
            onFocusOut={() => setOpenIndex(null)}
            onKeyDown={(event) => event.key === "Escape" && setOpenIndex(null)}
          >
            {group.markers.length > 1 ? (
              <Menu tight label={labelOf(group.markers, countLabel)} items={group.markers.map((marker) => ({ label: marker.title, does: marker.href }))} />
            ) : (
              <a href={group.markers[0]?.href}>
                {labelOf(group.markers, countLabel)}
                <span class="hidden-text">: {titles[0]}</span>
              </a>
            )}
            {openIndex === group.x && (
              <span class={leftX > width / 2 ? "chart-tag-tip to-left" : "chart-tag-tip"} aria-hidden="true">
                {titles.map((title) => (
                  <span key={title}>{title}</span>
                ))}
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}
