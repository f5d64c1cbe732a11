// The navigation of an area of the store, beside its pages; on phones a row above them.
import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "../shared/components/icon";
import { number } from "../shared/i18n";

export interface SideLink {
  address: string;
  label: string;
  icon: IconName;
  isCurrent: boolean;
  count?: number | undefined;
}

export interface SideGroup {
  title?: string;
  places: readonly SideLink[];
  /** A button below the links. */
  action?: ComponentChildren;
}

export function SideNav({ label, groups }: { label: string; groups: readonly SideGroup[] }) {
  return (
    <nav class="side-nav" aria-label={label}>
      {groups
        .filter((group) => group.places.length || group.action)
        .map(({ title, places, action }) => (
          <div key={title ?? ""} class="side-group">
            {title && <h2>{title}</h2>}
            <ul>
              {places.map((place) => (
                <li key={place.address}>
                  <a href={place.address} aria-current={place.isCurrent ? "page" : undefined}>
                    <Icon name={place.icon} />
                    <span class="cut">{place.label}</span>
                    {place.count !== undefined && <span class="count">{number(place.count)}</span>}
                  </a>
                </li>
              ))}
              {action && <li>{action}</li>}
            </ul>
          </div>
        ))}
    </nav>
  );
}
