// The files of the newest release with size, on demand the digest and the command that checks it, and who signed them.
import { CopyButton, LinkButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Icon } from "../../shared/components/icon";
import { size, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { architectureOf, currentPlatform, PLATFORMS, type Platform } from "../platform";
import { PlatformMark } from "../platform_marks";
import type { BuildFacts } from "./build_facts";
import type { Offer } from "./get_product";

const t = translator("store");

type File = Schemas["Artifact"];

interface Props {
  product: Schemas["ProductDetail"];
  offer: Offer;
  /** Null until they are known. */
  known: BuildFacts | null;
}

export function Files({ product, offer: { release, files, isOwned }, known }: Props) {
  if (!release || !files.length) {
    return null;
  }
  return (
    <section class="panel-box files" id="files" aria-labelledby="files-title">
      <div class="get-head">
        <h2 id="files-title">{t("files.in", { version: release.version })}</h2>
        {isOwned === false && (
          <span class="quiet small row">
            <Icon name="lock" size="s" />
            {t("files.owners")}
          </span>
        )}
      </div>
      <ul>
        {files.map((file) => (
          <li key={file.id}>
            <FileDetails file={file} isOwned={isOwned === true} />
          </li>
        ))}
      </ul>
      <p class="files-signed small">{known && <SignedBy product={product} known={known} />}</p>
    </section>
  );
}

/** Who signed the newest release, with a link to the facts about the build; nothing if that is not known. */
export function SignedBy({ product, known: { signed } }: { product: Schemas["ProductDetail"]; known: BuildFacts }) {
  if (signed === undefined) {
    return null;
  }
  return signed ? (
    <a class="signed-by" href="#build">
      <Icon name="circle-check" size="s" />
      {t("build.signed", { publisher: product.publisher?.name ?? product.org })}
    </a>
  ) : (
    <a class="signed-by unsigned" href="#build">
      <Icon name="info" size="s" />
      {t("build.unsigned")}
    </a>
  );
}

function FileDetails({ file, isOwned }: { file: File; isOwned: boolean }) {
  return (
    <details>
      <summary>
        {file.platform ? <PlatformMark platform={file.platform} /> : <Icon name="file" />}
        <span class="cut">{file.platform ? [PLATFORMS[file.platform], architectureOf(file.filename)].filter(Boolean).join(" ") : file.filename}</span>
        {file.platform === currentPlatform && <Chip tone="good" plain>{t("for.you")}</Chip>}
        <span class="right quiet num">{size(file.size)}</span>
      </summary>
      <div class="file-more">
        <code>{file.filename}</code>
        {file.sha256 && (
          <>
            <span class="row">
              <span class="quiet">{"SHA-256"}</span>
              <code class="hash" title={file.sha256}>
                {file.sha256}
              </code>
            </span>
            <span class="row">
              <CopyButton text={file.sha256} name={`SHA-256 ${file.filename}`} />
              <CopyButton
                text={checksumCommand(file.filename, file.sha256, currentPlatform)}
                name={t("verify.of", { file: file.filename })}
                label={t("verify")}
              />
            </span>
          </>
        )}
        {isOwned && (
          <LinkButton tight download href={`/api/v1/artifacts/${file.id}`}>
            <Icon name="download" size="s" />
            {t("download")} <span class="hidden-text">{file.filename}</span>
          </LinkButton>
        )}
      </div>
    </details>
  );
}

/** The command that compares a downloaded file with its digest on this system. */
export function checksumCommand(filename: string, sha256: string, on: Platform): string {
  if (on === "windows") {
    return `(Get-FileHash '${filename.replace(/'/g, "''")}').Hash -eq '${sha256}'`;
  }
  const line = `${sha256}  ${filename}`.replace(/'/g, "'\\''");
  return `echo '${line}' | ${on === "macos" ? "shasum -a 256" : "sha256sum"} -c`;
}
