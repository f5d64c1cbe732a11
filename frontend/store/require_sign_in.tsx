// Shows its content to people who are signed in. Others see a link to sign in.
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

export function RequireSignIn({ text = t("first.text"), children }: Props) {
  if (me.value === undefined) {
    return <Loading />;
  }
  if (me.value !== null) {
    return <>{children}</>;
  }
  return (
    <Empty title={t("first")}>
      <p>{text}</p>
      <LinkButton look="strong" href={signInAddress()}>
        {tCommon("sign.in")}
      </LinkButton>
    </Empty>
  );
}
