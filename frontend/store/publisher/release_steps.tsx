// A draft on its way to publication, one step at a time: files, checks, release notes, review.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { query, setQuery } from "../../shared/router";
import { translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { CheckFiles } from "./check_files";
import { areFilesUploaded, areFilesAccepted } from "./ready_to_publish";
import type { JobStates } from "./processing_job";
import { STEPS, type Step } from "./publication_steps";
import { ReleaseNotes, type TypedNotes } from "./release_notes";
import type { Release } from "./releases";
import { ReviewRelease } from "./review_release";
import { useStoredInput } from "../stored_input";
import { UploadFiles } from "./upload_files";

const t = translator("publisher");

interface Props {
  product: Schemas["ProductDetail"];
  release: Release;
  reload: () => void;
}

function go(step: Step): void {
  setQuery({ step }, { replaces: false });
}

export function ReleaseSteps({ product, release, reload }: Props) {
  const [jobs, setJobs] = useState<JobStates>({});
  // The step at the start. It stays while the person works, even if another step is completed meanwhile.
  const [firstStep] = useState<Step>(() => (!areFilesUploaded(release) ? "files" : release.notes_only ? "review" : "checks"));
  const step = STEPS.find((step) => step === query.value.get("step")) ?? firstStep;
  const [hasUploaded, setUploaded] = useState(false);
  const isChecking = useRef(false);
  isChecking.current ||= hasUploaded || step === "checks" || step === "review";
  const saved: TypedNotes = { notes: release.notes ?? "", channel: release.channel };
  const typing = useStoredInput<TypedNotes>(`notes of ${product.id} ${release.version}`, saved);
  const isUnsaved = typing.value.notes !== saved.notes || typing.value.channel !== saved.channel;
  const isDone: Readonly<Record<Step, boolean>> = {
    files: areFilesUploaded(release),
    checks: areFilesUploaded(release) && areFilesAccepted(release, jobs),
    notes: saved.notes !== "" && !isUnsaved,
    review: false,
  };
  return (
    <div class="stack">
      <StepList step={step} isDone={isDone} />
      {/* Files and checks stay while another step is shown: uploads go on. */}
      <StepPanel name="files" step={step} onNext={() => go("checks")}>
        <UploadFiles {...{ product, release }} reload={() => (setUploaded(true), reload())} />
      </StepPanel>
      <StepPanel name="checks" step={step} onNext={() => go("notes")}>
        {isChecking.current && (
          <CheckFiles release={release} onState={(artifact, state) => setJobs((current) => ({ ...current, [artifact]: state }))} onFiles={() => go("files")} />
        )}
      </StepPanel>
      <StepPanel name="notes" step={step}>
        <ReleaseNotes {...{ product, release, typing, isUnsaved, reload }} onSaved={() => go("review")} onBack={() => go("checks")} />
      </StepPanel>
      <StepPanel name="review" step={step}>
        <ReviewRelease {...{ product, release, jobs, isUnsaved, reload }} onStep={go} />
      </StepPanel>
    </div>
  );
}

function StepList({ step, isDone }: { step: Step; isDone: Readonly<Record<Step, boolean>> }) {
  return (
    <nav aria-label={t("steps")}>
      <ol class="steps">
        {STEPS.map((stepName, index) => (
          <li key={stepName} class={isDone[stepName] ? "done" : ""}>
            <button type="button" aria-current={stepName === step ? "step" : undefined} onClick={() => go(stepName)}>
              <span class="mark" aria-hidden="true">
                {isDone[stepName] ? <Icon name="check" size="s" /> : index + 1}
              </span>
              <span>
                {t(`step.${stepName}`)}
                {isDone[stepName] && <span class="hidden-text"> ({t("step.done")})</span>}
              </span>
            </button>
          </li>
        ))}
      </ol>
    </nav>
  );
}

function StepPanel({ name, step, onNext, children }: { name: Step; step: Step; onNext?: () => void; children: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const previousStep = useRef(step);
  const isShown = name === step;
  useEffect(() => {
    // Focus the heading of the chosen step.
    if (isShown && previousStep.current !== step) {
      heading.current?.focus();
    }
    previousStep.current = step;
  }, [step]);
  const stepBefore = STEPS[STEPS.indexOf(name) - 1];
  return (
    <section class="stack step" hidden={!isShown} aria-labelledby={`step-${name}`}>
      <h2 id={`step-${name}`} tabIndex={-1} ref={heading}>
        {t(`step.${name}`)}
      </h2>
      {children}
      {onNext && (
        <div class="row form-actions">
          {stepBefore && <Button onClick={() => go(stepBefore)}>{t("step.back")}</Button>}
          <Button variant="strong" onClick={onNext}>
            {t("step.next")}
          </Button>
        </div>
      )}
    </section>
  );
}
