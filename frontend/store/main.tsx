// The store's pages. A new one: its address in paths.json, its line here, its file in pages/.
import { Design } from "../shared/design";
import { LinkButton, Button } from "../shared/components/button";
import { enter } from "../shared/entry";
import { path } from "../shared/router";
import { say as shared } from "../shared/say";
import { isSignedIn, lookWho } from "../shared/session";
import { Home } from "./pages/home";
import { Product } from "./pages/product";
import { say } from "./say";

function End() {
  if (isSignedIn.value === null) {
    return null;
  }
  if (!isSignedIn.value) {
    return <LinkButton href={`/auth/signin?return_to=${encodeURIComponent(path.value)}`}>{shared("sign.in")}</LinkButton>;
  }
  return (
    <>
      <a href="/auth/agents">{say("agents")}</a>
      <form method="post" action="/auth/signout">
        <Button type="submit">{shared("sign.out")}</Button>
      </form>
    </>
  );
}

void lookWho();
enter({
  title: "Countersign",
  routes: [
    { template: "/", page: () => <Home /> },
    { template: "/products/{slug}", page: ({ slug }) => <Product slug={slug ?? ""} /> },
    { template: "/design", page: () => <Design /> },
  ],
  places: [["/", say("products")]],
  foot: [
    ["/wiki.json", say("manual")],
    ["/openapi.json", "OpenAPI"],
    ["/auth.md", say("for.agents")],
  ],
  End,
});
