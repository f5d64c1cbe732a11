// An icon, hidden from screen readers, because a text beside it, or the label of its button, has the same meaning.
import { ICONS, type IconName } from "../icons";

export type { IconName };

const iconsByName: Record<string, string> = { ...ICONS };

/** Add the icons of an app to the shared icons. */
export function addIcons(icons: Readonly<Record<string, string>>): void {
  Object.assign(iconsByName, icons);
}

export function hasIcon(name: string): boolean {
  return name in iconsByName;
}

interface Props {
  name: IconName;
  /** 14, 16 or 20 px. */
  size?: "s" | "l";
}

export function Icon({ name, size }: Props) {
  return (
    <svg class={size ? `i ${size}` : "i"} viewBox="0 0 24 24" aria-hidden="true">
      <path d={iconsByName[name]} />
    </svg>
  );
}
