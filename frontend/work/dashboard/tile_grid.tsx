// The tiles of a dashboard in their columns. While it is edited, each has a handle, its width and a button that removes it.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { number, translator } from "../../shared/i18n";
import { movedTile, nextWidth, type Tile, WIDTHS, widthOf } from "./tile";
import { TileView } from "./tile_view";
import type { ComponentProps } from "preact";

const t = translator("dashboard");

interface Props extends Omit<ComponentProps<typeof TileView>, "tile"> {
  tiles: readonly Tile[];
  /** Left out where the tiles stay as they are. */
  onChange?: ((tiles: Tile[]) => void) | undefined;
}

export function TileGrid({ tiles, onChange, ...shown }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [draggedKey, setDraggedKey] = useState<string | null>(null);
  const [announcement, setAnnouncement] = useState("");
  // The tile whose handle has the keyboard: it keeps it wherever the tile moves to.
  const focusedKey = useRef<string | null>(null);
  useLayoutEffect(() => {
    if (focusedKey.current) {
      box.current?.querySelector<HTMLElement>(`[data-key="${focusedKey.current}"] [data-handle]`)?.focus();
      focusedKey.current = null;
    }
  });
  const move = (from: number, to: number, keeps = true) => {
    const tile = tiles[from];
    if (tile && onChange && to >= 0 && to < tiles.length) {
      focusedKey.current = keeps ? tile.key : null;
      setAnnouncement(t("moved", { n: number(to + 1), of: number(tiles.length) }));
      onChange(movedTile(tiles, from, to));
    }
  };
  const resize = (place: number, w: number) => {
    setAnnouncement(t(`width.${w}` as "width.3"));
    onChange?.(tiles.map((each, at) => (at === place ? { ...each, w } : each)));
  };
  const remove = (place: number) => {
    focusedKey.current = (tiles[place + 1] ?? tiles[place - 1])?.key ?? null;
    setAnnouncement(t("removed.tile"));
    onChange?.(tiles.filter((_, at) => at !== place));
  };
  const handleKeyDown = (event: KeyboardEvent, place: number) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const tile = tiles[place];
    if (step !== undefined && tile) {
      event.preventDefault();
      return event.shiftKey ? resize(place, nextWidth(tile, step)) : move(place, place + step);
    }
    return event.key === "Delete" ? remove(place) : undefined;
  };
  const handleDragOver = (event: DragEvent, place: number) => {
    const from = tiles.findIndex((each) => each.key === draggedKey);
    if (from >= 0) {
      event.preventDefault();
      if (from !== place) {
        move(from, place, false);
      }
    }
  };
  return (
    <div class={onChange ? "dashboard is-edited" : "dashboard"} ref={box}>
      {onChange && (
        <p class="hidden-text" role="status">
          {announcement}
        </p>
      )}
      {tiles.map((tile, place) => (
        <div
          key={tile.key}
          class={`tile-frame w${widthOf(tile)} of-${tile.kind}`}
          data-key={tile.key}
          draggable={onChange !== undefined}
          onDragStart={() => setDraggedKey(tile.key)}
          onDragEnd={() => setDraggedKey(null)}
          onDragOver={(event) => handleDragOver(event, place)}
        >
          {onChange && (
            <div class="tile-bar">
              <Button tight look="plain" onKeyDown={(event) => handleKeyDown(event, place)} aria-label={t("handle", { n: number(place + 1) })} title={t("handle.help")} data-handle>
                <Icon name="arrow-left-right" size="s" />
                {t(`kind.${tile.kind}`)}
              </Button>
              <span class="right" />
              <Button size="square tight" look="plain" aria-label={t("earlier", { n: number(place + 1) })} disabled={place === 0} onClick={() => move(place, place - 1)}>
                <Icon name="chevron-left" size="s" />
              </Button>
              <Button size="square tight" look="plain" aria-label={t("later", { n: number(place + 1) })} disabled={place === tiles.length - 1} onClick={() => move(place, place + 1)}>
                <Icon name="chevron-right" size="s" />
              </Button>
              <select class="input tight" aria-label={t("width", { n: number(place + 1) })} value={widthOf(tile)} onChange={(event) => resize(place, Number(event.currentTarget.value))}>
                {WIDTHS.map((each) => (
                  <option key={each} value={each} selected={each === widthOf(tile)}>
                    {t(`width.${each}`)}
                  </option>
                ))}
              </select>
              <Button size="square tight" look="plain" aria-label={t("remove.tile", { n: number(place + 1) })} onClick={() => remove(place)}>
                <Icon name="x" size="s" />
              </Button>
            </div>
          )}
          <div class="tile-body" inert={onChange !== undefined}>
            <TileView {...shown} tile={tile} />
          </div>
        </div>
      ))}
    </div>
  );
}
