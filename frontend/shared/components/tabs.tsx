// Tabs: shows one of several views (ARIA authoring practices, tabs).
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import { number } from "../i18n";

export interface Tab {
  name: string;
  label: string;
  /** The number shown on the tab. */
  count?: number | undefined;
  content: () => ComponentChildren;
}

interface Props {
  label: string;
  tabs: readonly Tab[];
  chosen: string;
  onChoose: (name: string) => void;
}

export function Tabs({ label, tabs, chosen, onChoose }: Props) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const shownTab = tabs.find((tab) => tab.name === chosen) ?? tabs[0];
  const handleKey = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined || !shownTab) {
      return;
    }
    event.preventDefault();
    const nextIndex = (tabs.indexOf(shownTab) + step + tabs.length) % tabs.length;
    onChoose(tabs[nextIndex]?.name ?? shownTab.name);
    (list.current?.children[nextIndex] as HTMLElement | undefined)?.focus();
  };
  return (
    <div>
      <div class="tab-list" role="tablist" aria-label={label} ref={list} onKeyDown={handleKey}>
        {tabs.map((tab) => (
          <button
            key={tab.name}
            type="button"
            role="tab"
            class="tab"
            id={`${id}-${tab.name}`}
            aria-selected={tab === shownTab}
            aria-controls={`${id}-panel`}
            tabIndex={tab === shownTab ? 0 : -1}
            onClick={() => onChoose(tab.name)}
          >
            {tab.label}
            {tab.count !== undefined && <span class="count">{number(tab.count)}</span>}
          </button>
        ))}
      </div>
      <div class="panel" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${shownTab?.name}`} tabIndex={0}>
        {shownTab?.content()}
      </div>
    </div>
  );
}
