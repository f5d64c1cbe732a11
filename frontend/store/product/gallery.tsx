// Pictures and films of a product: a row of small ones, and one at a time in full.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { number, translator } from "../../shared/i18n";
import type { Schemas } from "../api";

const tCommon = translator("common");
const t = translator("store");

type Media = Schemas["Media"];

export function Gallery({ media }: { media: readonly Media[] }) {
  const shown = media.filter((each) => each.kind !== "icon");
  const [at, setAt] = useState<number | null>(null);
  const one = at === null ? undefined : shown[at];
  if (!shown.length) {
    return null;
  }
  const step = (by: number) => setAt(((at ?? 0) + by + shown.length) % shown.length);
  const keyed = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by !== undefined && !(event.target instanceof HTMLVideoElement)) {
      event.preventDefault();
      step(by);
    }
  };
  return (
    <section aria-label={t("media")}>
      <ul class="gallery">
        {shown.map((each, place) => (
          <li key={each.id}>
            <button type="button" class="picture" onClick={() => setAt(place)} aria-label={t("media.show", { alt: each.alt })}>
              {each.kind === "video" ? (
                <video src={each.url} preload="metadata" muted tabIndex={-1} aria-hidden="true" />
              ) : (
                <img src={each.url} alt="" loading="lazy" {...sized(each)} />
              )}
            </button>
          </li>
        ))}
      </ul>
      <div onKeyDown={keyed}>
        <Dialog
          title={one ? t("media.at", { n: number((at ?? 0) + 1), all: number(shown.length) }) : ""}
          isOpen={one !== undefined}
          onClose={() => setAt(null)}
          look="wide"
        >
          {one && (
            <figure class="full" aria-live="polite">
              {one.kind === "video" ? (
                <video key={one.id} src={one.url} controls aria-label={one.alt} />
              ) : (
                <img key={one.id} src={one.url} alt={one.alt} {...sized(one)} />
              )}
              <figcaption>{one.alt}</figcaption>
            </figure>
          )}
          {shown.length > 1 && (
            <div class="row">
              <Button onClick={() => step(-1)}>{tCommon("previous")}</Button>
              <Button onClick={() => step(1)}>{tCommon("next")}</Button>
            </div>
          )}
        </Dialog>
      </div>
    </section>
  );
}

function sized({ width, height }: Media) {
  return width && height ? { width, height } : {};
}
