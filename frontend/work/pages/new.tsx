// A new record of any model.
import { useEffect, useState } from "preact/hooks";
import { NotFound } from "../../shared/components/shell";
import { showToast } from "../../shared/toast";
import { go } from "../../shared/router";
import type { Meta } from "../api";
import { addressOf, mayRun, modelOf, nounOf } from "../models";
import { EditForm } from "../record/edit_form";
import { CrumbHeading } from "../shell/crumb_heading";
import { ProposedNotice } from "../record/proposed_notice";
import { translator } from "../../shared/i18n";

const t = translator("record");

export function NewRecord({ meta, name }: { meta: Meta; name: string }) {
  const [planId, setPlanId] = useState<string | null>(null);
  const model = modelOf(meta, name);
  useEffect(() => {
    // Focus the first field.
    document.querySelector<HTMLElement>(".record form :is(input, select, textarea)")?.focus();
  }, []);
  if (!model || !mayRun(model, "create")) {
    return <NotFound />;
  }
  return (
    <div class="stack record">
      <CrumbHeading href={`/models/${name}`} label={t("back", { model: model.plural })} title={t("new", { model: nounOf(model.label) })} />
      {planId && <ProposedNotice planId={planId} />}
      <EditForm
        {...{ meta, model, base: null }}
        onSaved={(row) => (showToast(t("created")), go(addressOf(name, row.id), { replaces: true }))}
        onProposed={setPlanId}
      />
    </div>
  );
}
