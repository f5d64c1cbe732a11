// The sign-in form. The server keeps the session where no script can read it.
import { useEffect, useState } from "preact/hooks";
import { Button } from "../shared/components/button";
import { Faults, TextField } from "../shared/components/field";
import { Problem } from "../shared/problem";
import { signIn } from "./current_user";
import { translator } from "../shared/i18n";

const tCommon = translator("common");
const t = translator("work");

interface Props {
  /** Stands before the fields' names where the page behind may have the same ones. */
  prefix?: string;
  username?: string;
  onSigned: () => void;
}

export function SignInForm({ prefix = "", username = "", onSigned }: Props) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  // Of its own: what is typed would else be set back with every refusal.
  const [name, setName] = useState(username);
  // Where the keyboard begins, in a dialog by its attribute: the first field that is empty.
  const first = username ? "password" : "username";
  useEffect(() => {
    document.getElementById(`${prefix}${first}`)?.focus();
  }, []);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    try {
      await signIn(String(form.get(`${prefix}username`)), String(form.get(`${prefix}password`)));
      onSigned();
    } catch (error) {
      const refused = Problem.from(error);
      setProblem(refused.status === 401 ? new Problem(401, { detail: t("sign.wrong") }) : refused);
      setBusy(false);
    }
  };
  return (
    <>
      <Faults problem={problem} />
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <TextField name={`${prefix}username`} label={t("username")} value={name} onInput={(event) => setName(event.currentTarget.value)} autocomplete="username" autocapitalize="none" autofocus={first === "username"} required />
        <TextField name={`${prefix}password`} label={t("password")} type="password" autocomplete="current-password" autofocus={first === "password"} required />
        <div class="row">
          <Button type="submit" look="strong" busy={isBusy}>
            {tCommon("sign.in")}
          </Button>
        </div>
      </form>
    </>
  );
}
