// Says that a command waits for approval, and where.
import { translator } from "../../shared/i18n";

const t = translator("record");

export function Proposed({ planId }: { planId: string }) {
  return (
    <p class="notice" role="status">
      {t("proposed")} <a href={`/approvals?plan=${encodeURIComponent(planId)}`}>{t("proposed.link")}</a>
    </p>
  );
}
