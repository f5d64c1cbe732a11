// Says that notes are stored in this browser only, and deletes them.
import { Button } from "../../shared/components/button";
import { translator } from "../../shared/i18n";
import { showToast } from "../../shared/toast";
import { Curl } from "../curl";
import { clearNotes } from "../product_notes";

const t = translator("library");

/** Says that notes are stored in this browser only, and deletes them. */
export function StoredNotes() {
  return (
    <section class="library-foot" aria-label={t("shelf.here")}>
      <p>{t("shelf.here.text")}</p>
      <Curl method="GET" path="/api/v1/library?limit=100" />
      <Button tight look="risky" onClick={() => (clearNotes(), showToast(t("shelf.forgotten")))}>
        {t("shelf.forget")}
      </Button>
    </section>
  );
}
