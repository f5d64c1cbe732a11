// The commands that an agent may not use although its person may: by model, each with its risk.
import { Chip } from "../../shared/components/chip";
import { Icon } from "../../shared/components/icon";
import { number, translator } from "../../shared/i18n";
import { inLanguage, type Meta, type Model, type Risk } from "../api";
import { RISKS } from "../approvals/risk";

const t = translator("agents");

interface DeniedCommand {
  id: string;
  label: string;
  /** Undefined if the service is an earlier version. */
  risk: Risk | undefined;
}

interface DeniedModel {
  model: Model;
  commands: DeniedCommand[];
  /** The number of the model's commands that the person may use. */
  total: number;
}

/** The commands of the business models that the person may use and the agent may not, those with a high risk first. */
export function deniedCommands(meta: Meta, chosen: ReadonlySet<string>): DeniedModel[] {
  return meta.models
    .filter((model) => model.module !== "base")
    .map((model) => ({ model, total: model.commands.length, commands: deniedOf(model, chosen) }))
    .filter((group) => group.commands.length > 0)
    .toSorted((one, other) => one.model.plural.localeCompare(other.model.plural));
}

function deniedOf(model: Model, chosen: ReadonlySet<string>): DeniedCommand[] {
  const rank = ({ risk }: DeniedCommand) => (risk ? RISKS.indexOf(risk) : RISKS.length);
  return model.commands
    .filter((id) => !chosen.has(id))
    .map((id) => {
      const details = model.command_details?.find((commandDetail) => commandDetail.id === id);
      return { id, label: inLanguage(details?.labels, id), risk: details?.risk };
    })
    .toSorted((one, other) => rank(one) - rank(other));
}

export function DeniedCommands({ denied }: { denied: readonly DeniedModel[] }) {
  return (
    <ul class="denied" aria-label={t("denied")}>
      {denied.map(({ model, commands, total }) => (
        <li key={model.name}>
          <details>
            <summary>
              <strong class="cut">{model.plural}</strong>
              <span class="quiet cut">{commands.length === total ? t("denied.all") : t("denied.some", { n: number(commands.length), of: number(total) })}</span>
              <HighRisk count={commands.filter((command) => command.risk === "high").length} />
              <Icon name="chevron-down" size="s" />
            </summary>
            <ul>
              {commands.map((command) => (
                <li key={command.id} title={command.id}>
                  <span>{command.label}</span>
                  <RiskChip risk={command.risk} />
                </li>
              ))}
            </ul>
          </details>
        </li>
      ))}
    </ul>
  );
}

function HighRisk({ count }: { count: number }) {
  return count === 0 ? null : (
    <Chip plain tone="bad">
      {t("denied.high", { n: number(count) })}
    </Chip>
  );
}

function RiskChip({ risk }: { risk: Risk | undefined }) {
  return risk ? (
    <Chip plain tone={risk === "high" ? "bad" : risk === "medium" ? "warn" : "good"}>
      {t(`risk.${risk}`)}
    </Chip>
  ) : null;
}
