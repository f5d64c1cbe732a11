// The permissions of a role for each model. Each grant is edited on its own page.
import { useState } from "preact/hooks";
import { Icon } from "../../shared/components/icon";
import { RequestResult } from "../../shared/components/states";
import { number, plural, translator } from "../../shared/i18n";
import { useRequest } from "../../shared/request";
import { type Meta, type Row, run } from "../api";
import { addressOf, modelOf } from "../models";
import { Widget } from "../widgets/widget";
import { type People, roleName } from "./people";

const t = translator("users");

const MAX_GRANTS = 1000;
const COLUMNS = ["get", "create", "update", "delete"] as const;
const READS = ["get", "list", "search", "count_by", "export", "history", "import"];

interface Grant extends Row {
  role: string;
  model: string;
  commands: string | null;
  masked: string | null;
  rows: string | null;
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : String(value ?? "").split(",").map((part) => part.trim()).filter(Boolean);
}

export function Roles({ meta, people }: { meta: Meta; people: People }) {
  const [chosenRole, setChosenRole] = useState(people.roles[0]?.id ?? "");
  const role = people.roles.find((role) => role.id === chosenRole);
  const peopleOf = (id: string) => [...people.memberships.values()].filter((membership) => membership.some((link) => link.role === id)).length;
  return (
    <div class="roles">
      <nav class="role-list" aria-label={t("roles")}>
        <ul>
          {people.roles.map((roleChoice) => (
            <li key={roleChoice.id}>
              <button type="button" class="role" aria-pressed={roleChoice.id === chosenRole} onClick={() => setChosenRole(roleChoice.id)}>
                <span class="grow cut">{roleName(roleChoice)}</span>
                <span class="quiet">{plural(peopleOf(roleChoice.id), t("role.people.one"), t("role.people"))}</span>
              </button>
            </li>
          ))}
        </ul>
      </nav>
      {role && <Matrix key={role.id} {...{ meta, role }} />}
    </div>
  );
}

function Matrix({ meta, role }: { meta: Meta; role: Row }) {
  const filter = [{ field: "role", op: "eq", value: role.id }];
  const grantRequest = useRequest(async (signal) => (await run<Grant[]>("grant", "list", { filter, limit: MAX_GRANTS }, signal)).value, [role.id]);
  const title = roleName(role);
  const labelOf = (grant: Grant) => modelOf(meta, grant.model)?.plural ?? grant.model;
  return (
    <Widget title={title} link={{ href: `/models/grant?filter=${encodeURIComponent(JSON.stringify(filter))}`, label: t("grants") }}>
      <RequestResult request={grantRequest}>
        {(grants) => (
          <div class="mini-wrap" tabIndex={0} role="group" aria-label={title}>
            <table class="mini matrix">
              <thead>
                <tr>
                  <th scope="col">{t("grant.model")}</th>
                  {COLUMNS.map((column) => (
                    <th key={column} scope="col">
                      {t(`grant.${column}`)}
                    </th>
                  ))}
                  <th scope="col">{t("grant.actions")}</th>
                  <th scope="col">{t("grant.masked")}</th>
                  <th scope="col">{t("grant.rows")}</th>
                </tr>
              </thead>
              <tbody>
                {grants.toSorted((a, b) => labelOf(a).localeCompare(labelOf(b))).map((grant) => {
                  const commands = listOf(grant.commands);
                  const actions = commands.filter((command) => command !== "*" && !READS.includes(command) && !(COLUMNS as readonly string[]).includes(command));
                  const maskedFields = listOf(grant.masked);
                  return (
                    <tr key={grant.id}>
                      <th scope="row">
                        <a href={addressOf("grant", grant.id)}>{labelOf(grant)}</a>
                      </th>
                      {COLUMNS.map((column) => (
                        <td key={column}>{commands.includes("*") || commands.includes(column) || (column === "get" && commands.some((name) => READS.includes(name))) ? <YesMark /> : <span class="quiet">–</span>}</td>
                      ))}
                      <td title={actions.join(", ")}>{commands.includes("*") ? <YesMark /> : actions.length > 0 ? number(actions.length) : <span class="quiet">–</span>}</td>
                      <td title={maskedFields.join(", ")}>{maskedFields.length > 0 ? <span class="chip masked">{maskedFields.includes("*") ? t("grant.all") : number(maskedFields.length)}</span> : <span class="quiet">–</span>}</td>
                      <td>{grant.rows ? t("grant.some") : t("grant.all")}</td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
        )}
      </RequestResult>
    </Widget>
  );
}

function YesMark() {
  return (
    <>
      <Icon name="check" size="s" />
      <span class="hidden-text">{t("grant.yes")}</span>
    </>
  );
}
