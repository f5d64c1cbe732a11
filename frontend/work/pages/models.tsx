// Where the work starts: every model there is for this person, by module.
import { Heading } from "../../shared/components/heading";
import type { Meta } from "../api";
import { translator } from "../../shared/i18n";

const t = translator("work");

export function Models({ meta }: { meta: Meta }) {
  return (
    <div class="stack">
      <Heading title={t("models")} />
      {meta.modules.map((module) => (
        <section key={module.name} class="stack tight" aria-labelledby={`module-${module.name}`}>
          <h2 id={`module-${module.name}`}>{module.label}</h2>
          <ul class="cards">
            {meta.models
              .filter((model) => model.module === module.name)
              .map((model) => (
                <li key={model.name} class="card">
                  <h3>
                    <a href={`/models/${model.name}`}>{model.plural}</a>
                  </h3>
                  <p>{model.help}</p>
                </li>
              ))}
          </ul>
        </section>
      ))}
    </div>
  );
}
