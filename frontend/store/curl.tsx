// Shows the request of an action as a curl command to copy.
import { CopyButton } from "../shared/components/button";
import { translator } from "../shared/i18n";

const t = translator("store");

interface Props {
  method: string;
  path: string;
  body?: unknown;
  /** Whether the request needs no token. */
  isOpen?: boolean;
}

export function Curl(props: Props) {
  return <CopyButton text={curl(props)} name={`${props.method} ${props.path}`} label={t("curl")} />;
}

export function curl({ method, path, body, isOpen = false }: Props): string {
  const commandParts = ["curl", ...(method === "GET" ? [] : ["-X", method]), quoted(location.origin + path)];
  if (!isOpen) {
    // The page has no token, so the command reads it from the environment.
    commandParts.push("-H", '"Authorization: Bearer $TOKEN"');
  }
  if (body !== undefined) {
    commandParts.push("-H", quoted("Content-Type: application/json"), "-d", quoted(JSON.stringify(body)));
  }
  return commandParts.join(" ");
}

function quoted(text: string): string {
  return `'${text.replace(/'/g, "'\\''")}'`;
}
