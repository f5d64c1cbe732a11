// The dialog that creates, renames or deletes a collection. Deleting one keeps its products.
import { useEffect, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { FormErrors, TextField } from "../../shared/components/field";
import { Icon } from "../../shared/components/icon";
import { Problem } from "../../shared/problem";
import { go } from "../../shared/router";
import { translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { createCollection, deleteCollection, renameCollection } from "./library_state";

const tLibrary = translator("library");

const MAX_NAME_LENGTH = 100;

interface Props {
  isOpen: boolean;
  onClose: () => void;
  /** The collection to rename or delete; undefined to create one. */
  collection?: Schemas["Collection"] | undefined;
}

export function CollectionDialog({ isOpen, onClose, collection }: Props) {
  const [name, setName] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    if (isOpen) {
      setName(collection?.name ?? "");
      setProblem(null);
    }
  }, [isOpen]);
  const run = async (action: () => Promise<string>) => {
    setBusy(true);
    try {
      const address = await action();
      onClose();
      go(address);
    } catch (error) {
      setProblem(Problem.from(error));
    } finally {
      setBusy(false);
    }
  };
  const save = async () => {
    const trimmedName = name.trim();
    await (collection ? renameCollection(collection.id, trimmedName) : createCollection(trimmedName));
    return `/library?collection=${encodeURIComponent(trimmedName)}`;
  };
  const remove = async () => {
    await deleteCollection(collection?.id ?? "");
    return "/library";
  };
  return (
    <Dialog
      title={tLibrary(collection ? "collection.edit" : "collection.new")}
      isOpen={isOpen}
      onClose={onClose}
      actions={
        <>
          <Button type="submit" variant="strong" form="collection-form" busy={isBusy}>
            {tLibrary(collection ? "collection.save" : "collection.create")}
          </Button>
          {collection && (
            <Button variant="risky" busy={isBusy} onClick={() => run(remove)}>
              <Icon name="trash-2" />
              {tLibrary("collection.delete")}
            </Button>
          )}
        </>
      }
    >
      <form
        id="collection-form"
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() && !isBusy) {
            void run(save);
          }
        }}
      >
        <FormErrors problem={problem} />
        <TextField
          name="collection-name"
          label={tLibrary("collection.name")}
          help={tLibrary("collection.help")}
          value={name}
          required
          maxLength={MAX_NAME_LENGTH}
          autocomplete="off"
          autofocus
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </form>
    </Dialog>
  );
}
