// Sign-in: what is typed goes to the server, which keeps the session where no script reads it.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Faults, TextField } from "../../shared/components/field";
import { Heading } from "../../shared/components/heading";
import { Problem } from "../../shared/problem";
import { go, path } from "../../shared/router";
import { say as shared } from "../../shared/say";
import { signIn } from "../person";
import { say } from "../say";

export function SignIn() {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    try {
      await signIn(String(form.get("username")), String(form.get("password")));
      if (path.peek() === "/signin") {
        go("/", { replaces: true });
      }
    } catch (error) {
      const refused = error instanceof Problem ? error : Problem.offline();
      setProblem(refused.status === 401 ? new Problem(401, { detail: say("sign.wrong") }) : refused);
      setBusy(false);
    }
  };
  return (
    <div class="narrow stack">
      <Heading title={say("sign.title")} />
      <Faults problem={problem} />
      <form class="stack" onSubmit={submit}>
        <TextField name="username" label={say("username")} autocomplete="username" autocapitalize="none" required />
        <TextField name="password" label={say("password")} type="password" autocomplete="current-password" required />
        <div class="row">
          <Button type="submit" look="strong" busy={isBusy}>
            {shared("sign.in")}
          </Button>
        </div>
      </form>
    </div>
  );
}
