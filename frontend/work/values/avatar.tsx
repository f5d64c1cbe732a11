// A small picture of a person or an agent: the initials, in a colour derived from the name.
import { Icon } from "../../shared/components/icon";

const COLOURS = ["", "a2", "a3", "a4", "a5"];

export function Avatar({ name, size = "" }: { name: string; size?: "" | "m" | "l" }) {
  const nameWords = name.split(/[\s._-]+/).filter(Boolean);
  const letters = nameWords.length > 1 ? `${nameWords[0]?.[0] ?? ""}${nameWords.at(-1)?.[0] ?? ""}` : name.slice(0, 2);
  const hash = [...name].reduce((sum, character) => (sum * 37 + (character.codePointAt(0) ?? 0)) % 997, 0);
  return (
    <span class={["avatar", size, COLOURS[hash % COLOURS.length]].filter(Boolean).join(" ")} data-letters={letters.toUpperCase()} />
  );
}

export function AgentAvatar({ size = "" }: { size?: "" | "m" | "l" }) {
  return (
    <span class={["avatar bot", size].filter(Boolean).join(" ")}>
      <Icon name="bot" {...(size ? {} : { size: "s" })} />
    </span>
  );
}
