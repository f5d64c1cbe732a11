// The tiles of a dashboard in columns. In edit mode, each tile has a handle, a choice of its width and a button to
// remove it.
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
  /** Undefined if the tiles cannot be edited. */
  onChange?: ((tiles: Tile[]) => void) | undefined;
}

export function TileGrid({ tiles, onChange, ...viewProps }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [draggedKey, setDraggedKey] = useState<string | null>(null);
  const [announcement, setAnnouncement] = useState("");
  // The tile whose handle has the focus. The handle keeps the focus when the tile moves.
  const focusedKey = useRef<string | null>(null);
  useLayoutEffect(() => {
    if (focusedKey.current) {
      box.current?.querySelector<HTMLElement>(`[data-key="${focusedKey.current}"] [data-handle]`)?.focus();
      focusedKey.current = null;
    }
  });
  const move = (fromIndex: number, toIndex: number, keeps = true) => {
    const tile = tiles[fromIndex];
    if (tile && onChange && toIndex >= 0 && toIndex < tiles.length) {
      focusedKey.current = keeps ? tile.key : null;
      setAnnouncement(t("moved", { n: number(toIndex + 1), of: number(tiles.length) }));
      onChange(movedTile(tiles, fromIndex, toIndex));
    }
  };
  const resize = (index: number, w: number) => {
    setAnnouncement(t(`width.${w}` as "width.3"));
    onChange?.(tiles.map((tile, tileIndex) => (tileIndex === index ? { ...tile, w } : tile)));
  };
  const remove = (index: number) => {
    focusedKey.current = (tiles[index + 1] ?? tiles[index - 1])?.key ?? null;
    setAnnouncement(t("removed.tile"));
    onChange?.(tiles.filter((_, tileIndex) => tileIndex !== index));
  };
  const handleKeyDown = (event: KeyboardEvent, index: number) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const tile = tiles[index];
    if (step !== undefined && tile) {
      event.preventDefault();
      return event.shiftKey ? resize(index, nextWidth(tile, step)) : move(index, index + step);
    }
    return event.key === "Delete" ? remove(index) : undefined;
  };
  const handleDragOver = (event: DragEvent, index: number) => {
    const draggedIndex = tiles.findIndex((tile) => tile.key === draggedKey);
    if (draggedIndex >= 0) {
      event.preventDefault();
      if (draggedIndex !== index) {
        move(draggedIndex, index, false);
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
      {tiles.map((tile, index) => (
        <div
          key={tile.key}
          class={`tile-frame w${widthOf(tile)} of-${tile.kind}`}
          data-key={tile.key}
          draggable={onChange !== undefined}
          onDragStart={() => setDraggedKey(tile.key)}
          onDragEnd={() => setDraggedKey(null)}
          onDragOver={(event) => handleDragOver(event, index)}
        >
          {onChange && (
            <div class="tile-bar">
              <Button tight variant="plain" onKeyDown={(event) => handleKeyDown(event, index)} aria-label={`${t(`kind.${tile.kind}`)}: ${t("handle", { n: number(index + 1) })}`} title={t("handle.help")} data-handle>
                <Icon name="arrow-left-right" size="s" />
                {t(`kind.${tile.kind}`)}
              </Button>
              <span class="right" />
              <Button size="square tight" variant="plain" aria-label={t("earlier", { n: number(index + 1) })} disabled={index === 0} onClick={() => move(index, index - 1)}>
                <Icon name="chevron-left" size="s" />
              </Button>
              <Button size="square tight" variant="plain" aria-label={t("later", { n: number(index + 1) })} disabled={index === tiles.length - 1} onClick={() => move(index, index + 1)}>
                <Icon name="chevron-right" size="s" />
              </Button>
              <select class="input tight" aria-label={t("width", { n: number(index + 1) })} value={widthOf(tile)} onChange={(event) => resize(index, Number(event.currentTarget.value))}>
                {WIDTHS.map((tileWidth) => (
                  <option key={tileWidth} value={tileWidth} selected={tileWidth === widthOf(tile)}>
                    {t(`width.${tileWidth}`)}
                  </option>
                ))}
              </select>
              <Button size="square tight" variant="plain" aria-label={t("remove.tile", { n: number(index + 1) })} onClick={() => remove(index)}>
                <Icon name="x" size="s" />
              </Button>
            </div>
          )}
          <div class="tile-body" inert={onChange !== undefined}>
            <TileView {...viewProps} tile={tile} />
          </div>
        </div>
      ))}
    </div>
  );
}
