// The dialog that creates a record for the form behind it. It is outside that form, because forms cannot be nested.
import { useState } from "preact/hooks";
import { Dialog } from "../../shared/components/dialog";
import type { Meta } from "../api";
import { nounOf } from "../models";
import { cacheRecords } from "../referenced_records";
import { newRecordRequest } from "../values/new_record_request";
import { EditForm } from "./edit_form";
import { ProposedNotice } from "./proposed_notice";
import { translator } from "../../shared/i18n";

const t = translator("record");

export function NewRecordDialog({ meta }: { meta: Meta }) {
  const [planId, setPlanId] = useState<string | null>(null);
  const request = newRecordRequest.value;
  const close = () => {
    newRecordRequest.value = null;
    setPlanId(null);
  };
  if (request === null) {
    return null;
  }
  const { model, name, onMade } = request;
  return (
    <Dialog title={t("new", { model: nounOf(model.label) })} variant="wide" isOpen onClose={close}>
      {planId ? (
        <ProposedNotice planId={planId} />
      ) : (
        <EditForm
          {...{ meta, model, base: null }}
          prefix="made-"
          initialTexts={name ? { [model.shown_as]: name } : {}}
          onSaved={(row) => (cacheRecords(model, [row]), onMade(row), close())}
          onProposed={setPlanId}
        />
      )}
    </Dialog>
  );
}
