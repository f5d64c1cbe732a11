// Uploads files to a draft, in chunks that survive a lost connection, and lists the files that have arrived.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { SelectField } from "../../shared/components/field";
import { FailureNotice } from "../../shared/components/states";
import { Problem } from "../../shared/problem";
import { duration, size, translator } from "../../shared/i18n";
import { api, type Schemas } from "../api";
import { PLATFORMS, type Platform } from "../platform";
import { CommandLine } from "../command_line";
import { FileDrop } from "./file_drop";
import { FileTable } from "./release_files";
import type { Release } from "./releases";
import { pathOf, upload } from "./chunked_upload";

const tStore = translator("store");
const t = translator("publisher");

interface Props {
  product: Schemas["ProductDetail"];
  release: Release;
  reload: () => void;
}

interface Item {
  file: File;
  sent: number;
  /** The start of this attempt in milliseconds of the page, and the number of bytes that had already been received. */
  began: { at: number; sent: number } | null;
  state: "sending" | "stopped" | Problem | { artifact: string };
}

export function UploadFiles({ product, release, reload }: Props) {
  const [platform, setPlatform] = useState<Platform | "">("");
  const [items, setItems] = useState<readonly Item[]>([]);
  const uploads = useRef(new Map<File, AbortController>());
  useEffect(() => () => uploads.current.forEach((upload) => upload.abort()), []);
  const change = (file: File, changes: Partial<Item>) =>
    setItems((items) => items.map((item) => (item.file === file ? { ...item, ...changes } : item)));
  const arrived = (file: File, sentBytes: number) =>
    setItems((had) =>
      had.map((item) => (item.file === file ? { ...item, sent: sentBytes, began: item.began ?? { at: performance.now(), sent: sentBytes } } : item)),
    );
  const push = `countersign push PATH ${product.org}/${product.slug} --version ${release.version}${platform && ` --platform ${platform}`}`;
  const begin = async (file: File) => {
    change(file, { state: "sending", began: null });
    const controller = new AbortController();
    uploads.current.set(file, controller);
    try {
      const values = { id: product.id, version: release.version };
      const body = { filename: file.name, size: file.size, platform: platform || null, sha256: null };
      const headers = { "Idempotency-Key": keyOf(file, `${product.id} ${release.version} ${platform}`) };
      const announced = await api.post("/api/v1/products/{id}/releases/{version}/artifacts", { values, body, headers });
      const address = pathOf(announced.value.upload_url);
      const reply = await upload<{ id: string }>(address, file, controller.signal, (sentBytes) => arrived(file, sentBytes));
      change(file, { sent: file.size, state: { artifact: reply.id } });
      reload();
    } catch (error) {
      change(file, { state: error instanceof Problem ? error : "stopped" });
    }
  };
  const add = (files: readonly File[]) => {
    setItems((items) => [...items, ...files.map((file) => ({ file, sent: 0, began: null, state: "sending" as const }))]);
    void files.reduce((uploadBefore, file) => uploadBefore.then(() => begin(file)), Promise.resolve());
  };
  return (
    <div class="stack">
      <SelectField
        name="platform"
        label={tStore("platform")}
        value={platform}
        options={[["", t("platform.none")], ...Object.entries(PLATFORMS)]}
        onChange={(value) => setPlatform(value as Platform | "")}
      />
      <FileDrop hint={t("drop")} onFiles={add} />
      {items.filter((shownItem) => !isThere(shownItem, release)).map((item) => (
        <UploadItem
          key={`${item.file.name} ${item.file.lastModified}`}
          item={item}
          onRetry={() => void begin(item.file)}
          pause={() => uploads.current.get(item.file)?.abort()}
        />
      ))}
      <FileTable release={release} />
      <CommandLine label={t("push")} text={push} />
    </div>
  );
}

function UploadItem({ item, onRetry, pause }: { item: Item; onRetry: () => void; pause: () => void }) {
  const { file, sent, state } = item;
  const pace = state === "sending" ? paceOf(item) : null;
  return (
    <div class="stack">
      <label class="stack">
        <span class="row between">
          <strong>{file.name}</strong>
          <span class="small quiet">
            {size(sent)} / {size(file.size)}
            {pace && ` · ${t("upload.left", { speed: size(pace.perS), left: duration(pace.leftS) })}`}
          </span>
        </span>
        <progress max={Math.max(1, file.size)} value={sent} />
      </label>
      {state instanceof Problem && <FailureNotice problem={state} onRetry={onRetry} />}
      {state === "sending" && sent > 0 && (
        <div>
          <Button tight onClick={pause}>
            {t("pause")} <span class="hidden-text">{file.name}</span>
          </Button>
        </div>
      )}
      {state === "stopped" && <Button onClick={onRetry}>{t("resume")}</Button>}
    </div>
  );
}

/** Whether the uploaded file is in the table of the release's files. */
function isThere({ state }: Item, release: Release): boolean {
  return typeof state === "object" && "artifact" in state && Boolean(release.artifacts?.some((artifact) => artifact.id === state.artifact));
}

/** The speed of this attempt, and the remaining time; null until bytes have been sent. */
function paceOf({ file, sent, began }: Item): { perS: number; leftS: number } | null {
  const passed_s = began ? (performance.now() - began.at) / 1000 : 0;
  const perS = began && passed_s > 0 ? (sent - began.sent) / passed_s : 0;
  return perS > 0 ? { perS, leftS: (file.size - sent) / perS } : null;
}

/** The Idempotency-Key of a file's upload. It stays the same in this tab, so that after a reload the store returns the same
 *  upload address, and received bytes are not sent again. */
function keyOf(file: File, release: string): string {
  const name = `upload ${release} ${file.name} ${file.size} ${file.lastModified}`;
  const key = sessionStorage.getItem(name) ?? crypto.randomUUID();
  sessionStorage.setItem(name, key);
  return key;
}
