// Shows the children to a signed-in person, and a link to the sign-in page to others.
import type { ComponentChildren } from "preact";
import { LinkButton } from "../shared/components/button";
import { Empty, Loading } from "../shared/components/states";
import { signInAddress } from "../shared/sign_in_page";
import { me } from "./me";
import { translator } from "../shared/i18n";

const tCommon = translator("common");
const t = translator("store");

interface Props {
  /** The reason to sign in, instead of the usual text. */
  text?: string;
  children: ComponentChildren;
}

export function RequireSignIn({ text = t("sign.in.library"), children }: Props) {
  if (me.value === undefined) {
    return <Loading />;
  }
  if (me.value !== null) {
    return <>{children}</>;
  }
  return (
    <Empty title={t("sign.in.title")}>
      <p>{text}</p>
      <LinkButton variant="strong" href={signInAddress()}>
        {tCommon("sign.in")}
      </LinkButton>
    </Empty>
  );
}
