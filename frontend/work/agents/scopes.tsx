// The choice of an agent's commands for each model.
import { Chip } from "../../shared/components/chip";
import type { Meta, Model } from "../api";
import { type Command, isReadCommand } from "./commands";
import { translator } from "../../shared/i18n";

const t = translator("agents");

interface Props {
  meta: Meta;
  commands: readonly Command[];
  chosen: ReadonlySet<string>;
  onChoose: (chosen: ReadonlySet<string>) => void;
}

export function Scopes({ meta, commands, chosen, onChoose }: Props) {
  const put = (ids: readonly string[], isIn: boolean) => {
    const next = new Set(chosen);
    ids.forEach((id) => (isIn ? next.add(id) : next.delete(id)));
    onChoose(next);
  };
  return (
    <fieldset class="scopes">
      <legend>{t("scopes")}</legend>
      <p class="small quiet">{t("scopes.help")}</p>
      {meta.models.map((model) => (
        <OfModel key={model.name} {...{ model, chosen }} commands={commands.filter((command) => command.id.startsWith(`${model.name}.`))} onPut={put} />
      ))}
    </fieldset>
  );
}

interface OfModelProps {
  model: Model;
  commands: readonly Command[];
  chosen: ReadonlySet<string>;
  onPut: (ids: readonly string[], isIn: boolean) => void;
}

function OfModel({ model, commands, chosen, onPut }: OfModelProps) {
  const ids = commands.map((command) => command.id);
  if (ids.length === 0) {
    return null;
  }
  const chosenCount = ids.filter((id) => chosen.has(id)).length;
  return (
    <details class="scope-model">
      <summary>
        {model.plural}{" "}
        <span class="small quiet">
          {chosenCount}/{ids.length}
        </span>
      </summary>
      <label class="row tick">
        <input type="checkbox" checked={chosenCount === ids.length} onChange={(event) => onPut(ids, event.currentTarget.checked)} />
        {t("all", { model: model.plural })}
      </label>
      {[true, false].map((reads) => {
        const some = commands.filter((command) => isReadCommand(command.id) === reads);
        return some.length === 0 ? null : (
          <div key={String(reads)} class="stack tight">
            <h3 class="small">{t(reads ? "reads" : "writes")}</h3>
            {some.map((command) => (
              <label key={command.id} class="row tick">
                <input type="checkbox" checked={chosen.has(command.id)} onChange={(event) => onPut([command.id], event.currentTarget.checked)} />
                <code>{command.id}</code> <span class="small quiet">{command.description}</span>
                {command.needs_approval && <Chip tone="warn">{t("proposes")}</Chip>}
              </label>
            ))}
          </div>
        );
      })}
    </details>
  );
}
