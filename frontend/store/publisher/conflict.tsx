// Two people have changed the same product: what differs, and whose version it is to be.
import { Button } from "../../shared/components/button";
import { Table } from "../../shared/components/table";
import type { Written } from "./product_form";
import { say } from "./say";

interface Props {
  mine: Written;
  theirs: Written;
  onMine: () => void;
  onTheirs: () => void;
}

export function Conflict({ mine, theirs, onMine, onTheirs }: Props) {
  const names = (Object.keys(theirs) as (keyof Written)[]).filter((each) => shown(mine[each]) !== shown(theirs[each]));
  return (
    <section class="summary stack" role="alert">
      <h2>{say("conflict")}</h2>
      <p>{say("conflict.text")}</p>
      <Table
        caption={say("conflict.differs")}
        rows={names}
        keyOf={(each) => each}
        columns={[
          { name: "field", label: say("field"), cell: (each) => each },
          { name: "mine", label: say("mine"), cell: (each) => shown(mine[each]) },
          { name: "theirs", label: say("theirs"), cell: (each) => shown(theirs[each]) },
        ]}
      />
      <div class="row">
        <Button onClick={onTheirs}>{say("take.theirs")}</Button>
        <Button look="risky" onClick={onMine}>
          {say("keep.mine")}
        </Button>
      </div>
    </section>
  );
}

function shown(value: Written[keyof Written]): string {
  return Array.isArray(value) ? value.join(", ") : (value ?? "");
}
