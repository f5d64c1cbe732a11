// Shows once more what is about to be signed in haste: signing without reading is what approvals are there against.
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { number, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { Details } from "./details";
import { HASTY_S } from "./looking";
import type { Plan } from "./plan";

const t = translator("approvals");

interface Props {
  meta: Meta;
  group: readonly Plan[];
  now_ms: number;
  isOpen: boolean;
  onSign: () => void;
  onClose: () => void;
}

export function Again({ meta, group, now_ms, isOpen, onSign, onClose }: Props) {
  const first = group[0];
  return (
    <Dialog
      title={t("again.title")}
      look="wide"
      isOpen={isOpen}
      onClose={onClose}
      actions={
        <Button look="strong" onClick={onSign}>
          {group.length > 1 ? t("again.signs", { n: number(group.length) }) : t("again.sign")}
        </Button>
      }
    >
      <p>{t("again.text", { n: number(HASTY_S) })}</p>
      {first && <Details {...{ meta, plan: first, now_ms }} />}
    </Dialog>
  );
}
