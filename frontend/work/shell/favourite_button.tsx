// The star in the head of a page, which adds the page to the favourites in the sidebar or removes it.
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { translator } from "../../shared/i18n";
import { isNarrow } from "../screen_size";
import { favourites, toggleFavourite } from "./favourites";

const t = translator("work");

/** `path` is the address of the page, `name` its name in the sidebar. Hidden on phones for lack of space. */
export function FavouriteButton({ path, name }: { path: string; name: string }) {
  if (favourites.value === null || isNarrow.value) {
    return null;
  }
  const isOne = favourites.value.some((favourite) => favourite.path === path);
  const label = t("favourite");
  return (
    <Button size="square tight" variant="plain" aria-label={label} title={t(isOne ? "favourite.remove" : "favourite.add")} aria-pressed={isOne} onClick={() => void toggleFavourite(path, name)}>
      <Icon name="star" />
    </Button>
  );
}
