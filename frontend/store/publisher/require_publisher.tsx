// Shows its content only to publishers. Others see an explanation.
import type { ComponentChildren } from "preact";
import { Empty } from "../../shared/components/states";
import { RequireSignIn } from "../require_sign_in";
import { isPublisher, me } from "../me";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

interface Props {
  /** The organisation for which the person must publish; undefined for any. */
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
