// Edit conflict: another person changed the product; shows the differences and asks which version to keep.
import { Button } from "../../shared/components/button";
import { Table } from "../../shared/components/table";
import type { ProductInput } from "./product_form";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

interface Props {
  ownInput: ProductInput;
  serverInput: ProductInput;
  onMine: () => void;
  onTheirs: () => void;
}

export function Conflict({ ownInput, serverInput, onMine, onTheirs }: Props) {
  const names = (Object.keys(serverInput) as (keyof ProductInput)[]).filter((name) => fieldText(ownInput[name]) !== fieldText(serverInput[name]));
  return (
    <section class="summary stack" role="alert">
      <h2>{t("conflict")}</h2>
      <p>{t("conflict.text")}</p>
      <Table
        caption={t("conflict.differs")}
        rows={names}
        keyOf={(name) => name}
        columns={[
          { name: "field", label: t("field"), cell: (name) => name },
          { name: "mine", label: t("mine"), cell: (name) => fieldText(ownInput[name]) },
          { name: "theirs", label: t("theirs"), cell: (name) => fieldText(serverInput[name]) },
        ]}
      />
      <div class="row">
        <Button onClick={onTheirs}>{t("take.theirs")}</Button>
        <Button variant="risky" onClick={onMine}>
          {t("keep.mine")}
        </Button>
      </div>
    </section>
  );
}

function fieldText(value: ProductInput[keyof ProductInput]): string {
  return Array.isArray(value) ? value.join(", ") : (value ?? "");
}
