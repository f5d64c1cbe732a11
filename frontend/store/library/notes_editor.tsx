// Edits the private notes of a product in the library: a note, collections, and whether it is hidden.
import { Button } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Field, TextField } from "../../shared/components/field";
import { showToast } from "../../shared/toast";
import type { Schemas } from "../api";
import { newerRelease, updateNotes, productNotes } from "../product_notes";
import { translator } from "../../shared/i18n";

const tLibrary = translator("library");

type Owned = Schemas["Owned"];

const LONGEST_NOTE = 2000;

export function NotesEditor({ product }: { product: Owned }) {
  const noted = productNotes.value[product.id] ?? {};
  const hide = () => {
    updateNotes(product.id, { isHidden: true });
    // Its card is gone, and with it what the keyboard was on.
    document.getElementById("find")?.focus();
    showToast(tLibrary("library.hidden.one", { title: product.title }), {
      label: tLibrary("undo"),
      run: () => updateNotes(product.id, { isHidden: false }),
    });
  };
  const collect = (text: string) => {
    const named = text.split(",").map((each) => each.trim()).filter(Boolean);
    updateNotes(product.id, { collections: [...new Set(named)] });
  };
  return (
    <details class="downloads">
      <summary>
        {tLibrary("shelf")}
        <span class="hidden-text"> {product.title}</span>
      </summary>
      <div class="stack">
        <TextField
          name={`collections-${product.id}`}
          label={tLibrary("collections")}
          help={tLibrary("collections.help")}
          value={(noted.collections ?? []).join(", ")}
          maxLength={200}
          autocomplete="off"
          onChange={(event) => collect(event.currentTarget.value)}
        />
        <Field name={`note-${product.id}`} label={tLibrary("note")}>
          {(given) => (
            <textarea
              {...given}
              maxLength={LONGEST_NOTE}
              value={noted.note ?? ""}
              onChange={(event) => updateNotes(product.id, { note: event.currentTarget.value })}
            />
          )}
        </Field>
        <div>
          {noted.isHidden ? (
            <Button tight onClick={() => updateNotes(product.id, { isHidden: false })}>
              {tLibrary("library.show")} <span class="hidden-text">{product.title}</span>
            </Button>
          ) : (
            <Button tight onClick={hide}>
              {tLibrary("library.hide")} <span class="hidden-text">{product.title}</span>
            </Button>
          )}
        </div>
      </div>
    </details>
  );
}

/** The newest release, whether it is newer than what was downloaded here, and what the person noted. */
export function NotesSummary({ product }: { product: Owned }) {
  const noted = productNotes.value[product.id] ?? {};
  const update = newerRelease(product.id, product.channels);
  return (
    <>
      <span class="row">
        {update && (
          <a href={`/products/${product.slug}?channel=${update.channel}`}>
            <Chip tone="warn">
              {tLibrary("update", { version: update.version, had: noted.fetched?.[update.channel] ?? "" })}
            </Chip>
          </a>
        )}
        {noted.isHidden && <Chip>{tLibrary("library.hidden")}</Chip>}
        {noted.collections?.map((each) => (
          <a key={each} href={`/library?collection=${encodeURIComponent(each)}`}>
            {each}
          </a>
        ))}
      </span>
      {noted.note && <p class="written small">{noted.note}</p>}
    </>
  );
}
