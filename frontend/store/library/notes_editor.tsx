// Edits the private notes of a product in the library: a note, collections, and whether it is hidden.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Field, TextField } from "../../shared/components/field";
import { SignInAgain } from "../../shared/components/states";
import { isServerUnreachable } from "../../shared/connectivity";
import { Problem } from "../../shared/problem";
import { showToast } from "../../shared/toast";
import type { Schemas } from "../api";
import { useStoredInput } from "../stored_input";
import { collections, collectionsOf, loadNote, putInCollections, reloadNote, saveNote, setHidden } from "./library_state";
import { translator } from "../../shared/i18n";
import "../store.css";

const tLibrary = translator("library");

type OwnedProduct = Schemas["Owned"];

const MAX_NOTE_LENGTH = 2000;

interface Props {
  product: OwnedProduct;
  /** Called when the product is hidden. */
  onHidden: () => void;
}

export function NotesEditor({ product, onHidden }: Props) {
  const collectionNames = collectionsOf(product);
  const hide = () => {
    void setHidden(product, true);
    onHidden();
    showToast(tLibrary("library.hidden.one", { title: product.title }), {
      label: tLibrary("undo"),
      run: () => void setHidden(product, false),
    });
  };
  const choose = (name: string, isIn: boolean) =>
    void putInCollections(product, isIn ? [...collectionNames, name] : collectionNames.filter((collectionName) => collectionName !== name));
  return (
    <div class="stack">
      <fieldset>
        <legend>{tLibrary("collections")}</legend>
        {collections.value.map(({ id, name }) => (
          <label key={id} class="check row">
            <input type="checkbox" checked={collectionNames.includes(name)} onChange={(event) => choose(name, event.currentTarget.checked)} />
            <span>{name}</span>
          </label>
        ))}
        <NewCollection key={collectionNames.join()} id={product.id} onName={(name) => choose(name, true)} />
      </fieldset>
      <Note product={product} />
      <div>
        {product.hidden ? (
          <Button tight onClick={() => void setHidden(product, false)}>
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

interface Draft {
  text: string;
  /** The stored note that the typed text will replace. */
  base: string;
}

/** The private note, saved when the field is left. If another tab or device changed the note meanwhile, the person
 *  chooses one of the two versions. If it cannot be saved, the text stays in the tab, and the field shows the reason.
 *  It is saved as soon as the server can be reached, or when the field is shown again. */
function Note({ product }: { product: OwnedProduct }) {
  const noteBefore = product.note ?? "";
  const { value, change, isRestored, forget } = useStoredInput<Draft>(`note of ${product.id}`, { text: noteBefore, base: noteBefore });
  const [problem, setProblem] = useState<Problem | null>(null);
  /** The note that was saved elsewhere meanwhile. */
  const [serverText, setServerText] = useState<string | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  /** The present draft, also for a save that was started before it was typed. */
  const draft = useRef(value);
  draft.current = value;
  const lastSave = useRef(Promise.resolve());
  const isUnsaved = value.text.trim() !== noteBefore;
  const edit = (newDraft: Draft) => {
    draft.current = newDraft;
    change(newDraft);
  };
  const fail = (error: unknown) => {
    const problem = Problem.from(error);
    setProblem(problem);
    if (!field.current) {
      // The dialog is closed.
      showToast(problem.message);
    }
  };
  const saveDraft = async () => {
    const { text, base } = draft.current;
    const note = text.trim();
    try {
      if (note !== base || note !== noteBefore) {
        const serverText = await loadNote(product);
        if (serverText !== undefined && serverText !== base && serverText !== note) {
          setServerText(serverText);
          if (!field.current) {
            showToast(tLibrary("note.conflict"));
          }
          return;
        }
        await saveNote(product, note || null);
        // Text that was typed during the save will replace the note that is now saved.
        edit({ text: draft.current.text, base: note });
      }
      setProblem(null);
      if (draft.current.text === text) {
        forget();
      }
    } catch (error) {
      fail(error);
    }
  };
  /** Save the draft after a save that is under way. */
  const save = () => {
    lastSave.current = lastSave.current.then(saveDraft);
  };
  const keepMine = (replaced: string) => {
    edit({ text: draft.current.text, base: replaced });
    setServerText(null);
    field.current?.focus();
    save();
  };
  const keepTheirs = async () => {
    try {
      const serverText = await reloadNote(product);
      edit({ text: serverText, base: serverText });
      forget();
      setServerText(null);
      setProblem(null);
      field.current?.focus();
    } catch (error) {
      fail(error);
    }
  };
  useEffect(() => {
    // If another tab or device changed the note meanwhile, show the change before replacing it.
    const isFirst = isRestored && value.base === noteBefore;
    if ((isFirst || problem?.isOffline) && !isServerUnreachable.value) {
      save();
    }
  }, [isServerUnreachable.value]);
  return (
    <>
      <Field
        name={`note-${product.id}`}
        label={tLibrary("note")}
        {...(isRestored && isUnsaved ? { help: tLibrary("note.restored") } : {})}
        error={problem?.message}
      >
        {(controlAttributes) => (
          <textarea
            {...controlAttributes}
            ref={field}
            maxLength={MAX_NOTE_LENGTH}
            value={value.text}
            onInput={(event) => edit({ text: event.currentTarget.value, base: baseOf(draft.current, noteBefore) })}
            onBlur={() => serverText === null && save()}
          />
        )}
      </Field>
      {problem && <SignInAgain problem={problem} />}
      {serverText !== null && (
        <div class="stack" role="alert">
          <p>
            {tLibrary("note.conflict")} {tLibrary("note.choose")}
          </p>
          <blockquote class="longtext">{serverText || tLibrary("note.empty")}</blockquote>
          <div class="row">
            <Button tight onClick={() => keepMine(serverText)}>
              {tLibrary("note.mine")}
            </Button>
            <Button tight onClick={() => void keepTheirs()}>
              {tLibrary("note.theirs")}
            </Button>
          </div>
        </div>
      )}
    </>
  );
}

/** The stored note that the next draft replaces. An unsaved draft keeps the note from which it started, which may no
 *  longer be the stored note. */
function baseOf({ text, base }: Draft, serverText: string): string {
  return text.trim() === serverText ? serverText : base;
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
