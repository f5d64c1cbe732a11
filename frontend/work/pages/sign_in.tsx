// The sign-in page, which then opens the requested page.
import { Heading } from "../../shared/components/heading";
import { go, path } from "../../shared/router";
import { SignInForm } from "../sign_in_form";
import { translator } from "../../shared/i18n";

const t = translator("work");

export function SignIn() {
  const onSigned = () => path.peek() === "/signin" && go("/", { replaces: true });
  return (
    <div class="narrow stack">
      <Heading title={t("sign.title")} />
      <SignInForm onSigned={onSigned} />
    </div>
  );
}
