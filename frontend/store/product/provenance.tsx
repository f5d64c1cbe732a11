// The signature of a channel's current release. The page shows the statement; the command line verifies it with a pinned key.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { CopyButton } from "../../shared/components/button";
import { RequestResult } from "../../shared/components/states";
import { dateTime, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { CommandLine } from "../command_line";
import { PLATFORMS, type Platform } from "../platform";

const t = translator("store");

interface Statement {
  version: string;
  builds: Record<string, string>;
  counter: number;
  issued_at: string;
  expires_at: string;
}

interface Props {
  product: Schemas["ProductDetail"];
  channel: string;
}

export function Provenance({ product, channel }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="disclosure" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t("signed")}</summary>
      {isOpen && <Signature product={product} channel={channel} />}
    </details>
  );
}

function Signature({ product, channel }: Props) {
  const values = { id: product.id, channel };
  const channelRequest = useRequest(
    async (signal) => (await api.get("/api/v1/products/{id}/channels/{channel}", { values, signal })).value,
    [product.id, channel],
  );
  return (
    <RequestResult request={channelRequest}>
      {({ statement }) => {
        const parsedStatement = statementOf(statement);
        return (
          <div class="stack">
            <p>{t("signed.text")}</p>
            <dl class="facts">
              <dt>{t("signed.version")}</dt>
              <dd>{parsedStatement.version}</dd>
              <dt>{t("signed.key")}</dt>
              <dd>
                {statement.signatures.map(({ keyid }) => (
                  <Hash key={keyid} text={keyid} name={t("signed.key")} />
                ))}
              </dd>
              {Object.entries(parsedStatement.builds).map(([platform, digest]) => (
                <Build key={platform} platform={platform} digest={digest} />
              ))}
              <dt>{t("signed.at")}</dt>
              <dd>{dateTime(parsedStatement.issued_at)}</dd>
              <dt>{t("signed.until")}</dt>
              <dd>{dateTime(parsedStatement.expires_at)}</dd>
            </dl>
            <CommandLine
              label={t("signed.check")}
              text={`countersign pull ${product.org}/${product.slug} ./${product.slug} --channel ${channel} --verify`}
            />
          </div>
        );
      }}
    </RequestResult>
  );
}

function Build({ platform, digest }: { platform: string; digest: string }) {
  const name = platform in PLATFORMS ? PLATFORMS[platform as Platform] : "";
  const label = `${t("signed.manifest")} ${name}`.trim();
  return (
    <>
      <dt>{label}</dt>
      <dd>
        <Hash text={digest} name={label} />
      </dd>
    </>
  );
}

function Hash({ text, name }: { text: string; name: string }) {
  return (
    <span class="row">
      <code class="hash" title={text}>
        {text}
      </code>
      <CopyButton text={text} name={name} />
    </span>
  );
}

/** Decode the signed statement: JSON in UTF-8 in base64. */
export function statementOf({ payload }: Schemas["Envelope"]): Statement {
  return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(payload), (character) => character.charCodeAt(0)))) as Statement;
}
