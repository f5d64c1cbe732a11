// The head of a page below a list: a link back to the list, then the heading.
import { PageTitle } from "../../shared/components/heading";
import { Icon } from "../../shared/components/icon";
import { translator } from "../../shared/i18n";

const t = translator("work");

export function CrumbHeading({ href, label, title }: { href: string; label: string; title: string }) {
  return (
    <div class="page-head">
      <nav class="crumbs" aria-label={t("crumb")}>
        <a href={href}>{label}</a>
        <Icon name="chevron-right" size="s" />
      </nav>
      <PageTitle title={title} />
    </div>
  );
}
