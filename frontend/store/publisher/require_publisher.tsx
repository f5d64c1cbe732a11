// Shows its content to publishers only; everybody else gets an explanation.
import type { ComponentChildren } from "preact";
import { Empty } from "../../shared/components/states";
import { RequireSignIn } from "../require_sign_in";
import { isPublisher, me } from "../me";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

interface Props {
  /** Whose page it is, where it is not just anybody's who publishes. */
  org?: string | undefined;
  children: ComponentChildren;
}

export function RequirePublisher({ org, children }: Props) {
  const isTheirs = isPublisher.value && (org === undefined || Boolean(me.value?.orgs.includes(org)));
  return (
    <RequireSignIn>
      {isTheirs ? (
        children
      ) : (
        <Empty title={t("not.publisher")}>
          <p>{t("not.publisher.text")}</p>
        </Empty>
      )}
    </RequireSignIn>
  );
}
