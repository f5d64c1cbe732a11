// Shows once more what is about to be signed in haste: signing without reading is what approvals are there against.
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { number } from "../../shared/words";
import type { Meta } from "../api";
import { Details } from "./details";
import { HASTY_S } from "./looking";
import type { Plan } from "./plan";
import { say } from "./say";

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
      title={say("again.title")}
      look="wide"
      isOpen={isOpen}
      onClose={onClose}
      actions={
        <Button look="strong" onClick={onSign}>
          {group.length > 1 ? say("again.signs", { n: number(group.length) }) : say("again.sign")}
        </Button>
      }
    >
      <p>{say("again.text", { n: number(HASTY_S) })}</p>
      {first && <Details {...{ meta, plan: first, now_ms }} />}
    </Dialog>
  );
}
