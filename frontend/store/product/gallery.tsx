// The gallery of a product: a large picture or video, small ones in a row, and a full view.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { Icon } from "../../shared/components/icon";
import { number, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { CoverImage } from "../card";

const tCommon = translator("common");
const t = translator("store");

type Media = Schemas["Media"];

/** Videos first. The cover is included only if there is nothing else. */
function shownOf(media: readonly Media[]): readonly Media[] {
  const [videos, pictures] = [media.filter((mediaItem) => mediaItem.kind === "video"), media.filter((mediaItem) => mediaItem.kind === "screenshot")];
  const shownMedia = [...videos, ...pictures];
  return shownMedia.length ? shownMedia : media.filter((mediaItem) => mediaItem.kind === "cover");
}

export function Gallery({ product }: { product: Schemas["ProductDetail"] }) {
  const shownMedia = shownOf(product.media);
  const [at, setAt] = useState(0);
  const [isPlaying, setPlaying] = useState(false);
  const [isFull, setFull] = useState(false);
  const currentMedia = shownMedia[at];
  if (!currentMedia) {
    return (
      <div class="stage">
        <CoverImage product={product} sizes="(max-width: 760px) 100vw, 1100px" isFirst />
      </div>
    );
  }
  const choose = (place: number) => {
    setAt((place + shownMedia.length) % shownMedia.length);
    setPlaying(false);
  };
  const handleKey = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by !== undefined && !(event.target instanceof HTMLVideoElement)) {
      event.preventDefault();
      choose(at + by);
    }
  };
  return (
    <section class="gallery" aria-label={t("media")} onKeyDown={handleKey}>
      <div class="stage">
        {currentMedia.kind !== "video" ? (
          <button type="button" class="picture" onClick={() => setFull(true)} aria-label={t("media.show", { alt: currentMedia.alt })}>
            <img src={currentMedia.url} alt="" {...sized(currentMedia)} />
          </button>
        ) : isPlaying ? (
          <video key={currentMedia.id} src={currentMedia.url} controls autoplay aria-label={currentMedia.alt} />
        ) : (
          <button type="button" class="picture" onClick={() => setPlaying(true)} aria-label={`${t("media.play", { alt: currentMedia.alt })}, ${flagOf(currentMedia)}`}>
            <Still product={product} video={currentMedia} isFirst={at === 0} sizes="(max-width: 760px) 100vw, 1100px" />
            <span class="play">
              <Icon name="play" />
            </span>
            <span class="flag">{flagOf(currentMedia)}</span>
          </button>
        )}
      </div>
      {shownMedia.length > 1 && (
        <ul class="thumbs">
          {shownMedia.map((item, place) => (
            <li key={item.id}>
              <button type="button" aria-current={place === at ? "true" : undefined} aria-label={item.alt} onClick={() => choose(place)}>
                {item.kind === "video" ? (
                  <>
                    <Still product={product} video={item} isFirst={place === 0} sizes="160px" />
                    <Icon name="play" />
                  </>
                ) : (
                  <img src={item.url} alt="" loading="lazy" {...sized(item)} />
                )}
              </button>
            </li>
          ))}
        </ul>
      )}
      <Dialog title={t("media.at", { n: number(at + 1), all: number(shownMedia.length) })} isOpen={isFull} onClose={() => setFull(false)} variant="wide">
        <figure class="full" aria-live="polite">
          {currentMedia.kind === "video" ? (
            <video key={currentMedia.id} src={currentMedia.url} controls aria-label={currentMedia.alt} />
          ) : (
            <img key={currentMedia.id} src={currentMedia.url} alt={currentMedia.alt} {...sized(currentMedia)} />
          )}
          <figcaption>{currentMedia.alt}</figcaption>
        </figure>
        {shownMedia.length > 1 && (
          <div class="row">
            <Button onClick={() => choose(at - 1)}>{tCommon("previous")}</Button>
            <Button onClick={() => choose(at + 1)}>{tCommon("next")}</Button>
          </div>
        )}
      </Dialog>
    </section>
  );
}

/** The picture of a video before it plays: for the first video the product's cover, which is already loaded, for
 *  others the first frame. */
function Still({ product, video, isFirst, sizes }: { product: Schemas["ProductDetail"]; video: Media; isFirst: boolean; sizes: string }) {
  return isFirst ? (
    <CoverImage product={product} sizes={sizes} isFirst />
  ) : (
    <video key={video.id} src={video.url} preload="metadata" muted tabIndex={-1} aria-hidden="true" />
  );
}

/** The text on a video that is not playing yet. Its button's label repeats this text, so that speech input finds it. */
function flagOf(video: Media): string {
  return [t("media.trailer"), lengthOf(video)].filter(Boolean).join(" · ");
}

/** The duration of a video in hours, minutes and seconds, such as 1:24; empty if it is not known. */
function lengthOf({ duration }: Media): string {
  if (duration === null) {
    return "";
  }
  const seconds = Math.max(1, Math.round(duration));
  const [hours, rest] = [Math.floor(seconds / 3600), seconds % 3600];
  const parts = [...(hours ? [hours] : []), Math.floor(rest / 60), rest % 60];
  return parts.map((part, place) => (place ? String(part).padStart(2, "0") : String(part))).join(":");
}

function sized({ width, height }: Media) {
  return width && height ? { width, height } : {};
}
