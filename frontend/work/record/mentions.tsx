// The completion of names after `@` in a comment, and the mentions in its text.
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import { translator } from "../../shared/i18n";
import { UntrustedText } from "../../shared/components/untrusted_text";
import { run } from "../api";

const t = translator("record");

export interface Person {
  id: string;
  username: string;
  name?: string | null;
}

/** The record on which a comment is written. */
export interface Subject {
  model: string;
  record: string;
}

/** The unfinished name between an `@` and the cursor. */
const UNFINISHED = /(?:^|[\s([{])@([^\s@]{0,100})$/;
const DELAY_MS = 120;

/** The completion of the name before the cursor of a text field. */
export function useMentionList(field: RefObject<HTMLTextAreaElement | null>, subject: Subject, onText: (text: string) => void) {
  const [query, setQuery] = useState<string | null>(null);
  const [people, setPeople] = useState<Person[]>([]);
  const [activeIndex, setActiveIndex] = useState(0);
  useEffect(() => {
    if (query === null) {
      setPeople([]);
      return undefined;
    }
    const controller = new AbortController();
    const load = async () => {
      const answer = await run<Person[]>("comment", "people", { ...subject, q: query }, controller.signal);
      setPeople(answer.value);
      setActiveIndex(0);
    };
    const timer = setTimeout(() => void load().catch(() => controller.signal.aborted || setPeople([])), DELAY_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [query]);
  const isOpen = query !== null && people.length > 0;
  const choose = (person: Person) => {
    const area = field.current;
    if (area && query !== null) {
      const start = area.selectionStart - query.length;
      const head = `${area.value.slice(0, start)}${person.username} `;
      onText(head + area.value.slice(area.selectionStart));
      setTimeout(() => area.setSelectionRange(head.length, head.length), 0);
    }
    setQuery(null);
  };
  return {
    people,
    activeIndex,
    isOpen,
    choose,
    close: () => setQuery(null),
    /** Look for a name before the cursor. */
    update: (area: HTMLTextAreaElement) => setQuery(UNFINISHED.exec(area.value.slice(0, area.selectionStart))?.[1] ?? null),
    /** Whether the list has used the key. */
    handleKey: (event: KeyboardEvent): boolean => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const person = people[activeIndex];
      if (!isOpen || event.ctrlKey || event.metaKey) {
        return false;
      }
      if (step !== undefined) {
        setActiveIndex((activeIndex + step + people.length) % people.length);
      } else if ((event.key === "Enter" || event.key === "Tab") && person) {
        choose(person);
      } else if (event.key === "Escape") {
        setQuery(null);
      } else {
        return false;
      }
      event.preventDefault();
      event.stopPropagation();
      return true;
    },
  };
}

export function MentionList({ id, list }: { id: string; list: ReturnType<typeof useMentionList> }) {
  return (
    <div class="picker-pop" hidden={!list.isOpen}>
      <ul class="picker-list" role="listbox" id={id} aria-label={t("comment.people")}>
        {list.isOpen &&
          list.people.map((person, index) => (
            <li
              key={person.id}
              role="option"
              id={`${id}-${index}`}
              aria-selected={index === list.activeIndex}
              onPointerDown={(event) => (event.preventDefault(), list.choose(person))}
            >
              {person.username}
              {person.name && <span class="small quiet"> · {person.name}</span>}
            </li>
          ))}
      </ul>
    </div>
  );
}

/** The text of a comment, with the names of mentioned people emphasized. */
export function CommentText({ text, mentions }: { text: string; mentions: readonly Person[] }) {
  return (
    <>
      {splitMentions(text, mentions.map((person) => person.username.toLowerCase())).map((part, index) =>
        part.isMention ? <b key={index}>{part.text}</b> : <UntrustedText key={index} text={part.text} />,
      )}
    </>
  );
}

interface Part {
  text: string;
  isMention: boolean;
}

export function splitMentions(text: string, usernames: readonly string[]): Part[] {
  const parts: Part[] = [];
  let start = 0;
  if (usernames.length === 0) {
    return [{ text, isMention: false }];
  }
  const longest = Math.max(...usernames.map((username) => username.length));
  for (let at = text.indexOf("@"); at >= 0; at = text.indexOf("@", at + 1)) {
    const follows = text.slice(at + 1, at + 2 + longest).toLowerCase();
    const names = usernames.filter((username) => follows.startsWith(username) && !/^[\p{L}\p{N}]/u.test(follows.slice(username.length)));
    const length = Math.max(0, ...names.map((name) => name.length));
    if (length > 0) {
      parts.push({ text: text.slice(start, at), isMention: false }, { text: text.slice(at, at + 1 + length), isMention: true });
      start = at + 1 + length;
    }
  }
  return [...parts, { text: text.slice(start), isMention: false }].filter((part) => part.text);
}
