// The request behind an action, as a command to copy: what a page can do, a script can do.
import { CopyButton } from "../shared/components/button";
import { translator } from "../shared/i18n";

const t = translator("store");

interface Props {
  method: string;
  path: string;
  body?: unknown;
  /** Whether it is for everybody: no token then. */
  isOpen?: boolean;
}

export function Curl(props: Props) {
  return <CopyButton text={curl(props)} of={`${props.method} ${props.path}`} label={t("curl")} />;
}

export function curl({ method, path, body, isOpen = false }: Props): string {
  const parts = ["curl", ...(method === "GET" ? [] : ["-X", method]), quoted(location.origin + path)];
  if (!isOpen) {
    // Where a token comes from the page does not know, and must not: whoever runs it brings their own.
    parts.push("-H", '"Authorization: Bearer $TOKEN"');
  }
  if (body !== undefined) {
    parts.push("-H", quoted("Content-Type: application/json"), "-d", quoted(JSON.stringify(body)));
  }
  return parts.join(" ");
}

function quoted(text: string): string {
  return `'${text.replace(/'/g, "'\\''")}'`;
}
