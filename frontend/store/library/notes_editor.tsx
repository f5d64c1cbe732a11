// Edits the private notes of a product in the library: a note, collections, and whether it is hidden.
import { Button } from "../../shared/components/button";
import { Field, TextField } from "../../shared/components/field";
import { showToast } from "../../shared/toast";
import type { Schemas } from "../api";
import { updateNotes, productNotes } from "../product_notes";
import { translator } from "../../shared/i18n";

const tLibrary = translator("library");

type Owned = Schemas["Owned"];

const LONGEST_NOTE = 2000;

interface Props {
  product: Owned;
  /** Called when the product is hidden. */
  onHidden: () => void;
}

export function NotesEditor({ product, onHidden }: Props) {
  const noted = productNotes.value[product.id] ?? {};
  const hide = () => {
    updateNotes(product.id, { isHidden: true });
    onHidden();
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
  );
}
