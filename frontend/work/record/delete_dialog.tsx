// The dialog before a record is deleted: what is deleted with it, and what prevents it.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { RequestResult } from "../../shared/components/states";
import { number, translator } from "../../shared/i18n";
import type { Meta, Model, Row } from "../api";
import { nounOf, titleOf } from "../models";
import { type Dependent, dependentsOf } from "./dependents";

const t = translator("record");

interface Props {
  meta: Meta;
  model: Model;
  record: Row;
  /** Whether the deletion was refused because of records that this person may not see. */
  isRefused: boolean;
  onDelete: (cascade: boolean) => void;
  onClose: () => void;
}

export function DeleteDialog({ meta, model, record, isRefused, onDelete, onClose }: Props) {
  const [cascade, setCascade] = useState(false);
  const dependentsRequest = useRequest((signal) => dependentsOf(meta, model, record.id, signal), [record.id]);
  const dependents = dependentsRequest.state === "loaded" ? dependentsRequest.value : [];
  const isBlocked = dependents.some((dependent) => dependent.effect === "refuse");
  const effects = new Set(dependents.map((dependent) => dependent.effect));
  const alongWith = isRefused || effects.size !== 1 ? "" : effects.has("clear") ? ".clear" : ".cascade";
  const needsCascade = !isBlocked && (dependents.length > 0 || isRefused);
  return (
    <Dialog
      title={t("delete.title", { name: titleOf(model, record) })}
      isOpen
      onClose={onClose}
      actions={
        !isBlocked && (
          <Button variant="risky" busy={dependentsRequest.state === "loading" || (needsCascade && !cascade)} onClick={() => onDelete(cascade)}>
            {t("delete.do", { model: nounOf(model.label) })}
          </Button>
        )
      }
    >
      <p>{t("delete.text")}</p>
      <RequestResult request={dependentsRequest}>{(loadedDependents) => (loadedDependents.length > 0 ? <DependentList dependents={loadedDependents} /> : null)}</RequestResult>
      {isBlocked && <p class="notice">{t("delete.blocked")}</p>}
      {isRefused && !isBlocked && <p class="notice">{t("delete.hidden")}</p>}
      {needsCascade && (
        <label class="row">
          <input type="checkbox" checked={cascade} onChange={(event) => setCascade(event.currentTarget.checked)} />
          {t(`delete.along${alongWith}` as "delete.along")}
        </label>
      )}
    </Dialog>
  );
}

function DependentList({ dependents }: { dependents: readonly Dependent[] }) {
  return (
    <ul class="dependents">
      {dependents.map(({ model, field, effect, count }) => (
        <li key={`${model.name}.${field.name}`}>
          {t(`delete.${effect}`, { n: number(count), model: nounOf(count === 1 ? model.label : model.plural), field: field.label })}
        </li>
      ))}
    </ul>
  );
}
