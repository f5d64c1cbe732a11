// Renders a small part of Markdown, for release notes and descriptions. The text is untrusted: it never becomes HTML, and
// links can only have the schemes http and https.
import type { ComponentChildren, JSX } from "preact";

const INLINE = /(`[^`\n]+`)|\*\*([^*\n]+)\*\*|\*([^*\n]+)\*|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>()]+[^\s<>().,;:!?])/;
const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/;

interface Props {
  text: string;
  /** The element for its headings. */
  heading?: "h2" | "h3" | "h4";
}

export function Markdown({ text, heading = "h4" }: Props) {
  return <div class="prose">{blocks(text.replace(/\r\n?/g, "\n"), heading)}</div>;
}

function blocks(text: string, Title: "h2" | "h3" | "h4"): ComponentChildren[] {
  const found: ComponentChildren[] = [];
  const lines = text.split("\n");
  let at = 0;
  const take = (belongs: (line: string) => boolean): string[] => {
    const from = at;
    while (at < lines.length && belongs(lines[at] ?? "")) {
      at += 1;
    }
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (!line.trim()) {
      at += 1;
    } else if (line.startsWith("```")) {
      at += 1;
      found.push(<Code lines={take((each) => !each.startsWith("```"))} />);
      at += 1;
    } else if (heading) {
      at += 1;
      // All headings get the same level, below those of the page.
      found.push(<Title>{inline(heading[2] ?? "")}</Title>);
    } else if (ITEM.test(line)) {
      found.push(list(take((each) => ITEM.test(each) || /^\s{2,}\S/.test(each))));
    } else {
      found.push(paragraph(take((each) => each.trim() !== "" && !ITEM.test(each) && !/^(```|#{1,6}\s)/.test(each))));
      // A line that matches nothing above is text. Without this the loop would not end.
      at += at < lines.length && lines[at] === line ? 1 : 0;
    }
  }
  return found;
}

function Code({ lines }: { lines: readonly string[] }) {
  return (
    <pre tabIndex={0}>
      <code>{lines.join("\n")}</code>
    </pre>
  );
}

function list(lines: readonly string[]): JSX.Element {
  const items: string[] = [];
  for (const line of lines) {
    const found = ITEM.exec(line);
    if (found) {
      items.push(found[2] ?? "");
    } else {
      items.push(`${items.pop() ?? ""} ${line.trim()}`);
    }
  }
  const children = items.map((each) => <li>{inline(each)}</li>);
  return ITEM.exec(lines[0] ?? "")?.[1] ? <ol>{children}</ol> : <ul>{children}</ul>;
}

function paragraph(lines: readonly string[]): JSX.Element {
  return <p>{lines.flatMap((line, place) => (place ? [<br />, ...inline(line)] : inline(line)))}</p>;
}

function inline(text: string): ComponentChildren[] {
  const found: ComponentChildren[] = [];
  let rest = text;
  for (let match = INLINE.exec(rest); match; match = INLINE.exec(rest)) {
    found.push(rest.slice(0, match.index), marked(match));
    rest = rest.slice(match.index + match[0].length);
  }
  return [...found, rest];
}

function marked([whole, code, strong, soft, label, target, bare]: RegExpExecArray): ComponentChildren {
  if (code) {
    return <code>{code.slice(1, -1)}</code>;
  }
  if (strong ?? soft) {
    return strong ? <strong>{strong}</strong> : <em>{soft}</em>;
  }
  const href = target ?? bare ?? "";
  return (
    <a href={href} rel="noopener noreferrer nofollow ugc">
      {label ?? bare ?? whole}
    </a>
  );
}
