// Edits the private notes of a product in the library: a note, collections, and whether it is hidden.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Field, TextField } from "../../shared/components/field";
import { showToast } from "../../shared/toast";
import type { Schemas } from "../api";
import { collections, collectionsOf, putInCollections, updateItem } from "./library_state";
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
  const named = collectionsOf(product);
  const hide = () => {
    void updateItem(product, { hidden: true });
    onHidden();
    showToast(tLibrary("library.hidden.one", { title: product.title }), {
      label: tLibrary("undo"),
      run: () => void updateItem({ ...product, hidden: true }, { hidden: false }),
    });
  };
  const choose = (name: string, isIn: boolean) =>
    void putInCollections(product, isIn ? [...named, name] : named.filter((each) => each !== name));
  return (
    <div class="stack">
      <fieldset>
        <legend>{tLibrary("collections")}</legend>
        {collections.value.map(({ id, name }) => (
          <label key={id} class="check row">
            <input type="checkbox" checked={named.includes(name)} onChange={(event) => choose(name, event.currentTarget.checked)} />
            <span>{name}</span>
          </label>
        ))}
        <NewCollection key={named.join()} id={product.id} onName={(name) => choose(name, true)} />
      </fieldset>
      <Field name={`note-${product.id}`} label={tLibrary("note")}>
        {(given) => (
          <textarea
            {...given}
            maxLength={LONGEST_NOTE}
            value={product.note ?? ""}
            onChange={(event) => void updateItem(product, { note: event.currentTarget.value.trim() || null })}
          />
        )}
      </Field>
      <div>
        {product.hidden ? (
          <Button tight onClick={() => void updateItem(product, { hidden: false })}>
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

/** The field for the name of another collection. */
function NewCollection({ id, onName }: { id: string; onName: (name: string) => void }) {
  const [name, setName] = useState("");
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim()) {
          onName(name.trim());
        }
      }}
    >
      <TextField
        name={`collection-${id}`}
        label={tLibrary("collection.new")}
        value={name}
        maxLength={100}
        autocomplete="off"
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <Button type="submit">{tLibrary("collection.add")}</Button>
    </form>
  );
}
