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
  const blocks: ComponentChildren[] = [];
  const lines = text.split("\n");
  let lineIndex = 0;
  const take = (belongs: (line: string) => boolean): string[] => {
    const firstLine = lineIndex;
    while (lineIndex < lines.length && belongs(lines[lineIndex] ?? "")) {
      lineIndex += 1;
    }
    return lines.slice(firstLine, lineIndex);
  };
  while (lineIndex < lines.length) {
    const line = lines[lineIndex] ?? "";
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (!line.trim()) {
      lineIndex += 1;
    } else if (line.startsWith("```")) {
      lineIndex += 1;
      blocks.push(<Code lines={take((line) => !line.startsWith("```"))} />);
      lineIndex += 1;
    } else if (heading) {
      lineIndex += 1;
      // All headings get the same level, below those of the page.
      blocks.push(<Title>{inline(heading[2] ?? "")}</Title>);
    } else if (ITEM.test(line)) {
      blocks.push(list(take((line) => ITEM.test(line) || /^\s{2,}\S/.test(line))));
    } else {
      blocks.push(paragraph(take((line) => line.trim() !== "" && !ITEM.test(line) && !/^(```|#{1,6}\s)/.test(line))));
      // A line that matches nothing above is text. Without this the loop would not end.
      lineIndex += lineIndex < lines.length && lines[lineIndex] === line ? 1 : 0;
    }
  }
  return blocks;
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
    const match = ITEM.exec(line);
    if (match) {
      items.push(match[2] ?? "");
    } else {
      items.push(`${items.pop() ?? ""} ${line.trim()}`);
    }
  }
  const children = items.map((item) => <li>{inline(item)}</li>);
  return ITEM.exec(lines[0] ?? "")?.[1] ? <ol>{children}</ol> : <ul>{children}</ul>;
}

function paragraph(lines: readonly string[]): JSX.Element {
  return <p>{lines.flatMap((line, index) => (index ? [<br />, ...inline(line)] : inline(line)))}</p>;
}

function inline(text: string): ComponentChildren[] {
  const nodes: ComponentChildren[] = [];
  let restOfText = text;
  for (let match = INLINE.exec(restOfText); match; match = INLINE.exec(restOfText)) {
    nodes.push(restOfText.slice(0, match.index), marked(match));
    restOfText = restOfText.slice(match.index + match[0].length);
  }
  return [...nodes, restOfText];
}

function marked([wholeMatch, code, strong, soft, label, target, bareUrl]: RegExpExecArray): ComponentChildren {
  if (code) {
    return <code>{code.slice(1, -1)}</code>;
  }
  if (strong ?? soft) {
    return strong ? <strong>{strong}</strong> : <em>{soft}</em>;
  }
  const href = target ?? bareUrl ?? "";
  return (
    <a href={href} rel="noopener noreferrer nofollow ugc">
      {label ?? bareUrl ?? wholeMatch}
    </a>
  );
}
