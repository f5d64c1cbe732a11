// The sign-in form. The server stores the session in a cookie that scripts cannot read.
import { useEffect, useState } from "preact/hooks";
import { Button } from "../shared/components/button";
import { FormErrors, TextField } from "../shared/components/field";
import { Problem } from "../shared/problem";
import { signIn } from "./current_user";
import { translator } from "../shared/i18n";

const tCommon = translator("common");
const t = translator("work");

interface Props {
  /** A prefix of the fields' names, if the page has another form with the same fields. */
  prefix?: string;
  username?: string;
  onSigned: () => void;
}

export function SignInForm({ prefix = "", username = "", onSigned }: Props) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  // A separate state, because an error would otherwise reset the typed name.
  const [name, setName] = useState(username);
  // The first empty field, which gets the focus.
  const firstInput = username ? "password" : "username";
  useEffect(() => {
    document.getElementById(`${prefix}${firstInput}`)?.focus();
  }, []);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    try {
      await signIn(String(form.get(`${prefix}username`)), String(form.get(`${prefix}password`)));
      onSigned();
    } catch (error) {
      const signInProblem = Problem.from(error);
      setProblem(signInProblem.status === 401 ? new Problem(401, { detail: t("sign.wrong") }) : signInProblem);
      setBusy(false);
    }
  };
  return (
    <>
      <FormErrors problem={problem} />
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <TextField name={`${prefix}username`} label={t("username")} value={name} onInput={(event) => setName(event.currentTarget.value)} autocomplete="username" autocapitalize="none" autofocus={firstInput === "username"} required />
        <TextField name={`${prefix}password`} label={t("password")} type="password" autocomplete="current-password" autofocus={firstInput === "password"} required />
        <div class="row">
          <Button type="submit" variant="strong" busy={isBusy}>
            {tCommon("sign.in")}
          </Button>
        </div>
      </form>
    </>
  );
}
