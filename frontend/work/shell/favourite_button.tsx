// The star in the head of a page: it puts the page among the favourites in the sidebar, and takes it out again.
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { translator } from "../../shared/i18n";
import { isNarrow } from "../narrow";
import { favourites, toggleFavourite } from "./favourites";

const t = translator("work");

/** Not on a phone, whose heads have no room for it. `path` is the page's address, `name` what the sidebar calls it. */
export function FavouriteButton({ path, name }: { path: string; name: string }) {
  if (favourites.value === null || isNarrow.value) {
    return null;
  }
  const isOne = favourites.value.some((each) => each.path === path);
  const label = t("favourite");
  return (
    <Button size="square tight" look="plain" aria-label={label} title={t(isOne ? "favourite.remove" : "favourite.add")} aria-pressed={isOne} onClick={() => void toggleFavourite(path, name)}>
      <Icon name="star" />
    </Button>
  );
}
