// Sign-in, and then on to the page that was asked for.
import { Heading } from "../../shared/components/heading";
import { go, path } from "../../shared/router";
import { say } from "../say";
import { Signing } from "../signing";

export function SignIn() {
  const onSigned = () => path.peek() === "/signin" && go("/", { replaces: true });
  return (
    <div class="narrow stack">
      <Heading title={say("sign.title")} />
      <Signing onSigned={onSigned} />
    </div>
  );
}
