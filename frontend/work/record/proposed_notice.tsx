// The notice that a command waits for approval, with a link to its plan.
import { translator } from "../../shared/i18n";

const t = translator("record");

export function ProposedNotice({ planId }: { planId: string }) {
  return (
    <p class="notice" role="status">
      {t("proposed")} <a href={`/approvals?plan=${encodeURIComponent(planId)}`}>{t("proposed.link")}</a>
    </p>
  );
}
