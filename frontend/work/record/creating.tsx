// Makes a record in a dialog, for the form behind it; outside of that form, as a form holds no other.
import { useState } from "preact/hooks";
import { Dialog } from "../../shared/components/dialog";
import type { Meta } from "../api";
import { note } from "../refs";
import { creating } from "../values/creating";
import { Editing } from "./editing";
import { Proposed } from "./proposed";
import { translator } from "../../shared/i18n";

const t = translator("record");

export function CreateInPlace({ meta }: { meta: Meta }) {
  const [planId, setPlanId] = useState<string | null>(null);
  const asked = creating.value;
  const close = () => {
    creating.value = null;
    setPlanId(null);
  };
  if (asked === null) {
    return null;
  }
  const { model, name, onMade } = asked;
  return (
    <Dialog title={t("new", { model: model.label })} look="wide" isOpen onClose={close}>
      {planId ? (
        <Proposed planId={planId} />
      ) : (
        <Editing
          {...{ meta, model, base: null }}
          prefix="made-"
          begun={name ? { [model.shown_as]: name } : {}}
          onSaved={(row) => (note(model, [row]), onMade(row), close())}
          onProposed={setPlanId}
        />
      )}
    </Dialog>
  );
}
