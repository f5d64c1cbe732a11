// The permissions of an agent for each model, as a table.
import { Chip } from "../../shared/components/chip";
import { Icon } from "../../shared/components/icon";
import { translator } from "../../shared/i18n";
import type { ModelPermissions, Permission } from "./agent_token";

const t = translator("agents");

export function PermissionMatrix({ rows }: { rows: readonly ModelPermissions[] }) {
  return (
    <div class="mini-wrap" tabIndex={0} role="group" aria-label={t("matrix")}>
      <table class="mini matrix">
        <thead>
          <tr>
            <th scope="col">{t("matrix.records")}</th>
            <th scope="col">{t("matrix.read")}</th>
            <th scope="col">{t("matrix.write")}</th>
            <th scope="col">{t("matrix.delete")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ model, read, write, remove }) => (
            <tr key={model.name}>
              <th scope="row">{model.plural}</th>
              {[read, write, remove].map((permission, index) => (
                <td key={index}>
                  <Mark permission={permission} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Mark({ permission }: { permission: Permission }) {
  switch (permission) {
    case "yes":
    case "partly":
      return (
        <span title={permission === "partly" ? t("matrix.partly") : undefined}>
          <Icon name="check" size="s" />
          <span class="hidden-text">{t(permission === "yes" ? "matrix.yes" : "matrix.partly")}</span>
        </span>
      );
    case "proposes":
      return (
        <Chip plain tone="warn">
          {t("proposes")}
        </Chip>
      );
    case "masked":
      return <span class="chip masked">{t("matrix.masked")}</span>;
    default:
      return (
        <>
          <span aria-hidden="true" class="quiet">
            –
          </span>
          <span class="hidden-text">{t("matrix.no")}</span>
        </>
      );
  }
}
