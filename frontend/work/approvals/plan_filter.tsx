// The filter of the proposals: agent, model and age.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { SelectField } from "../../shared/components/field";
import { escapeInvisible } from "../../shared/invisible_characters";
import { query, setQuery } from "../../shared/router";
import { translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { modelOf } from "../models";
import { Popover } from "../popover";
import { AGE_FILTERS, type Plan } from "./plan";

const t = translator("approvals");

export function PlanFilter({ meta, plans }: { meta: Meta; plans: readonly Plan[] }) {
  const [isOpen, setOpen] = useState(false);
  const models = [...new Set(plans.map((plan) => plan.command.split(".")[0] ?? ""))];
  const agents = [...new Set(plans.map((plan) => plan.agent ?? ""))].filter(Boolean);
  const allOption = [["", t("filter.all")]] as const;
  const isFiltered = ["agent", "model", "age"].some((name) => query.value.get(name));
  const field = (name: "agent" | "model" | "age", options: readonly (readonly [string, string])[]) => (
    <SelectField name={name} label={t(`filter.${name}`)} value={query.value.get(name) ?? ""} onChange={(newValue) => setQuery({ [name]: newValue, plan: "" })} options={[...allOption, ...options]} />
  );
  return (
    <Popover
      isOpen={isOpen}
      onClose={() => setOpen(false)}
      label={t("filters")}
      opener={
        <Button id="panel-filter" tight variant="plain" aria-label={t("filters")} aria-pressed={isFiltered} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon name="list-filter" size="s" />
          <span class="head-words">{t("filters")}</span>
        </Button>
      }
    >
      <div class="stack tight">
        {/* On phones, where its tab is hidden. */}
        <a class="own-link" href="/approvals?state=own" onClick={() => setOpen(false)}>
          {t("own")}
        </a>
        {field("agent", agents.map((agent) => [agent, escapeInvisible(agent)] as const))}
        {field("model", models.map((model) => [model, modelOf(meta, model)?.plural ?? model] as const))}
        {field("age", Object.keys(AGE_FILTERS).map((age) => [age, t(`age.${age}` as "age.day")] as const))}
      </div>
    </Popover>
  );
}
