// Saved views of a list: addresses with a name, kept in this browser.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { TextField } from "../../shared/components/field";
import { query } from "../../shared/router";
import { currentUser } from "../current_user";
import { translator } from "../../shared/i18n";

const t = translator("list");

type Saved = Record<string, string>;

/** Names and conditions may be personal: another person in this browser does not find them. */
function at(model: string): string {
  const who = currentUser.peek();
  const name = who !== null && typeof who === "object" && "caller" in who ? who.caller.name : "";
  return `views:${name}:${model}`;
}

function saved(model: string): Saved {
  try {
    return JSON.parse(localStorage.getItem(at(model)) ?? "{}") as Saved;
  } catch {
    return {};
  }
}

export function Views({ model }: { model: string }) {
  const [views, setViews] = useState(() => saved(model));
  const [name, setName] = useState("");
  const keep = (next: Saved) => {
    localStorage.setItem(at(model), JSON.stringify(next));
    setViews(next);
  };
  const save = (event: SubmitEvent) => {
    event.preventDefault();
    if (name.trim()) {
      keep({ ...views, [name.trim()]: query.peek().toString() });
      setName("");
    }
  };
  const remove = (gone: string) => keep(Object.fromEntries(Object.entries(views).filter(([each]) => each !== gone)));
  return (
    <div class="panel-box stack">
      <p class="small quiet">{t("views.text")}</p>
      {Object.keys(views).length === 0 && <p>{t("views.none")}</p>}
      <ul class="columns">
        {Object.entries(views).map(([each, search]) => (
          <li key={each} class="row">
            <a href={`/models/${model}?${search}`}>{each}</a>
            <Button tight look="plain" aria-label={t("views.remove", { name: each })} onClick={() => remove(each)}>
              ×
            </Button>
          </li>
        ))}
      </ul>
      <form class="filters tight" onSubmit={save}>
        <TextField name="view-name" label={t("views.name")} value={name} maxLength={60} onInput={(event) => setName(event.currentTarget.value)} />
        <Button type="submit">{t("views.save")}</Button>
      </form>
    </div>
  );
}
