// The first steps in a new installation: create records, invite people, connect an agent.
import { LinkButton } from "../../shared/components/button";
import { translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { businessModels, mayRun, modelOf } from "../models";
import { recordCounts } from "../shell/record_counts";
import { managesPeople } from "../users/people";
import { Widget } from "../widgets/widget";

const t = translator("home");

interface Step {
  name: "import" | "invite" | "connect";
  href: string;
  isDone: boolean;
}

export function Start({ meta }: { meta: Meta }) {
  const importModel = businessModels(meta).find((businessModel) => mayRun(businessModel, "import"));
  const steps: Step[] = [
    ...(importModel ? [{ name: "import", href: `/models/${importModel.name}/import`, isDone: Object.values(recordCounts.value).some((recordCount) => recordCount > 0) } as const] : []),
    ...(managesPeople(meta) ? [{ name: "invite", href: "/users", isDone: false } as const] : []),
    ...(modelOf(meta, "agent_token") ? [{ name: "connect", href: "/agents", isDone: false } as const] : []),
  ];
  return steps.length === 0 ? null : (
    <div class="full start">
      <Widget title={t("start")}>
        <ol class="steps">
          {steps.map(({ name, href, isDone }) => (
            <li key={name} class={isDone ? "done" : undefined}>
              <div>
                <h3>{t(`start.${name}`)}</h3>
                <p class="quiet">{t(`start.${name}.text`)}</p>
              </div>
              <LinkButton href={href}>{t(`start.${name}.do`)}</LinkButton>
            </li>
          ))}
        </ol>
      </Widget>
    </div>
  );
}
