// The work app's pages. A new one: its address in paths.json, its line here, its file in pages/.
import type { JSX } from "preact";
import { Button } from "../shared/components/button";
import { Failed, Loading } from "../shared/components/states";
import { Design } from "../shared/design";
import { enter } from "../shared/entry";
import { Problem } from "../shared/problem";
import { say as shared } from "../shared/say";
import type { Meta } from "./api";
import { List } from "./pages/list";
import { Models } from "./pages/models";
import { SignIn } from "./pages/sign_in";
import { known, look, signOut } from "./person";
import { say } from "./say";

/** A page for whoever is signed in; who is not gets there by signing in. */
function Personal({ page }: { page: (meta: Meta) => JSX.Element }) {
  const found = known.value;
  if (found === null) {
    return <Loading />;
  }
  if (found === "nobody") {
    return <SignIn />;
  }
  return found instanceof Problem ? <Failed problem={found} again={look} /> : page(found);
}

function End() {
  const found = known.value;
  if (found === null || found === "nobody" || found instanceof Problem) {
    return null;
  }
  return (
    <>
      <span class="small quiet">{say("signed.as", { name: found.caller.name })}</span>
      <Button onClick={signOut}>{shared("sign.out")}</Button>
    </>
  );
}

void look();
enter({
  title: "Countersign",
  routes: [
    { template: "/", page: () => <Personal page={(meta) => <Models meta={meta} />} /> },
    { template: "/signin", page: () => <SignIn /> },
    {
      template: "/models/{model}",
      page: ({ model }) => <Personal page={(meta) => <List key={model} meta={meta} name={model ?? ""} />} />,
    },
    { template: "/design", page: () => <Design /> },
  ],
  places: [["/", say("models")]],
  End,
});
