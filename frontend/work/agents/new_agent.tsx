// Creates an agent in three steps: its name, its permissions, and its token for setting up a client. Or replaces the token of
// an agent with a token that has other permissions, because the permissions of a token cannot change.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { FormErrors, SelectField, TextField } from "../../shared/components/field";
import { Problem } from "../../shared/problem";
import { plural, translator } from "../../shared/i18n";
import type { Meta } from "../api";
import { Widget } from "../widgets/widget";
import { type AgentToken, commandsOf, isGrantable, isLive, listOf, permissionsOf } from "./agent_token";
import { type Command, isReadCommand, issueToken } from "./commands";
import { NewToken } from "./new_token";
import { PermissionMatrix } from "./permission_matrix";
import { ReplacedToken } from "./replaced_token";
import { Scopes } from "./scopes";
import { TokenAccess } from "./token_access";

const t = translator("agents");

const LIVES_DAYS = [1, 7, 30, 90, 365];
const DEFAULT_LIFE_DAYS = 90;
const MAX_LIFE_DAYS = 365;
const DAY_S = 86_400;
const STEPS = ["name", "permissions", "token"] as const;
const PRESETS = ["read", "assistant", "custom"] as const;
type Preset = (typeof PRESETS)[number];

/** The scopes for the chosen commands. All commands of a model form one scope, to stay below the API's limit. */
function scopes(meta: Meta, chosen: ReadonlySet<string>): string[] {
  return meta.models.flatMap((model) => {
    const grantable = model.commands.filter(isGrantable);
    const chosenCommands = grantable.filter((id) => chosen.has(id));
    return chosenCommands.length > 0 && chosenCommands.length === grantable.length ? [`${model.name}.*`] : chosenCommands;
  });
}

/** The days that the token to replace is still valid, rounded up; the default for a token that has ended. */
function lifeDays(template: AgentToken | undefined): number {
  if (!template || !isLive(template)) {
    return DEFAULT_LIFE_DAYS;
  }
  const days = Math.ceil((Date.parse(template.expires_at) - Date.now()) / (DAY_S * 1000));
  return Math.min(days, MAX_LIFE_DAYS);
}

/** The commands of a preset, for the business models. */
function presetCommands(meta: Meta, commands: readonly Command[], preset: Preset): ReadonlySet<string> {
  const worked = new Set(meta.models.filter((model) => model.module !== "base").map((model) => model.name));
  const ids = commands.map((command) => command.id).filter((id) => isGrantable(id) && worked.has(id.split(".")[0] ?? ""));
  return new Set(preset === "assistant" ? ids : ids.filter(isReadCommand));
}

interface Props {
  meta: Meta;
  known: readonly Command[];
  /** The token to replace. It acts for the person who is signed in. */
  like?: AgentToken | undefined;
  onMade: () => void;
  onRevoke: (token: AgentToken) => void;
  onClose: () => void;
}

export function NewAgent({ meta, known, like: latest, onMade, onRevoke, onClose }: Props) {
  // The list of tokens may be loaded again without the token to replace.
  const [initial] = useState(latest);
  const template = latest ?? initial;
  const [step, setStep] = useState(template ? 1 : 0);
  const [label, setLabel] = useState(template?.label ?? "");
  const [days, setDays] = useState(() => String(lifeDays(template)));
  const [preset, setPreset] = useState<Preset>(template ? "custom" : "read");
  const [chosen, setChosen] = useState(() => (template ? commandsOf(meta, template) : presetCommands(meta, known, "read")));
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const unmasked = listOf(template?.unmask);
  const make = async (event: SubmitEvent) => {
    event.preventDefault();
    if (chosen.size === 0) {
      setProblem(new Problem(0, { detail: t("scopes.none") }));
      return;
    }
    setBusy(true);
    try {
      setToken(await issueToken({ label, scopes: scopes(meta, chosen), expires_in: Number(days) * DAY_S, ...(unmasked.length > 0 ? { unmask: unmasked } : {}) }));
      setProblem(null);
      setStep(2);
      onMade();
    } catch (error) {
      setProblem(Problem.from(error));
    }
    setBusy(false);
  };
  const choose = (next: Preset) => {
    setPreset(next);
    if (next !== "custom") {
      setChosen(presetCommands(meta, known, next));
    }
  };
  return (
    <section class="new-agent" aria-labelledby="making">
      <h2 id="making">{template ? t("replace.title", { label: template.label }) : t("create")}</h2>
      {template && step < 2 && <p class="quiet">{t("replace.text")}</p>}
      <ol class="stepper">
        {STEPS.map((name, place) => (
          <li key={name} aria-current={place === step ? "step" : undefined} class={place < step ? "done" : undefined}>
            {t(`step.${name}`)}
          </li>
        ))}
      </ol>
      {step === 0 && (
        <form class="stack" onSubmit={(event) => (event.preventDefault(), setStep(1))}>
          <TextField name="label" label={t("label")} help={t("label.help")} value={label} maxLength={100} required autofocus onInput={(event) => setLabel(event.currentTarget.value)} />
          <div class="field">
            <span class="name">{t("person")}</span>
            <span>{t("person.you", { name: meta.caller.name })}</span>
          </div>
          <Lifetime days={days} initialDays={lifeDays(template)} onChange={setDays} />
          <div class="row">
            <Button type="submit" variant="strong">
              {t("next")}
            </Button>
            <Button onClick={onClose}>{t("cancel")}</Button>
          </div>
        </form>
      )}
      {step === 1 && (
        <form class="stack" onSubmit={(event) => void make(event)}>
          <FormErrors problem={problem} />
          <div class="agent-columns">
            <div class="stack">
              <fieldset class="presets">
                <legend>{t("scopes")}</legend>
                {PRESETS.map((option) => (
                  <label key={option} class="preset">
                    <input type="radio" name="preset" checked={preset === option} onChange={() => choose(option)} />
                    <span>
                      <b>{t(`preset.${option}`)}</b>
                      <span class="quiet">{t(`preset.${option}.text`)}</span>
                    </span>
                  </label>
                ))}
              </fieldset>
              {template && <Lifetime days={days} initialDays={lifeDays(template)} onChange={setDays} />}
              {preset === "custom" && <Scopes meta={meta} commands={known.filter((command) => isGrantable(command.id))} chosen={chosen} onChoose={setChosen} />}
            </div>
            <div class="agent-column">
              <Widget title={t("may")}>
                <PermissionMatrix rows={permissionsOf(meta, known, chosen, unmasked)} />
              </Widget>
              <details>
                <summary>{t("sees")}</summary>
                <TokenAccess {...{ meta, chosen, unmasked }} />
              </details>
            </div>
          </div>
          <div class="row">
            <Button type="submit" variant="strong" busy={isBusy}>
              {t("make")}
            </Button>
            <Button onClick={() => setStep(0)}>{t("back")}</Button>
            <Button variant="plain" onClick={onClose}>
              {t("cancel")}
            </Button>
          </div>
        </form>
      )}
      {step === 2 && (
        <NewToken token={token} label={label} onDone={onClose}>
          {template && <ReplacedToken token={template} onRevoke={() => onRevoke(template)} onDone={onClose} />}
        </NewToken>
      )}
    </section>
  );
}

/** The choice of the lifetime, which includes the initial choice. */
function Lifetime({ days, initialDays, onChange }: { days: string; initialDays: number; onChange: (days: string) => void }) {
  const choices = [...new Set([...LIVES_DAYS, initialDays])].toSorted((one, other) => one - other);
  return <SelectField name="life" label={t("life")} value={days} onChange={onChange} options={choices.map((choice) => [String(choice), plural(choice, t("days.one"), t("days"))])} />;
}
