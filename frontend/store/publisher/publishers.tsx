// What stands on a publisher's page for whoever is none.
import type { ComponentChildren } from "preact";
import { Empty } from "../../shared/components/states";
import { SignedIn } from "../first";
import { isPublisher, me } from "../me";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

interface Props {
  /** Whose page it is, where it is not just anybody's who publishes. */
  org?: string | undefined;
  children: ComponentChildren;
}

export function Publishers({ org, children }: Props) {
  const isTheirs = isPublisher.value && (org === undefined || Boolean(me.value?.orgs.includes(org)));
  return (
    <SignedIn>
      {isTheirs ? (
        children
      ) : (
        <Empty title={t("not.publisher")}>
          <p>{t("not.publisher.text")}</p>
        </Empty>
      )}
    </SignedIn>
  );
}
