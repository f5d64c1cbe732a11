// The form for a new person: user name and role; then the link to set a password.
import { useState } from "preact/hooks";
import { Button, CopyButton } from "../../shared/components/button";
import { Faults, SelectField, TextField } from "../../shared/components/field";
import { Problem } from "../../shared/problem";
import { type Row, run } from "../api";
import { linkFor } from "./people";
import { translator } from "../../shared/i18n";

const tCommon = translator("common");
const t = translator("users");

interface Props {
  roles: readonly Row[];
  onMade: (username: string, link: string) => void;
  onClose: () => void;
}

export function InviteForm({ roles, onMade, onClose }: Props) {
  const [typed, setTyped] = useState({ username: "", name: "", email: "" });
  const [role, setRole] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  // The user created by an attempt that then failed at a role or the link; the next attempt continues from there.
  const [made, setMade] = useState<string | null>(null);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const values = Object.fromEntries(Object.entries(typed).filter(([, text]) => text));
      const id = made ?? (await run<Row>("user", "create", values)).value.id;
      setMade(id);
      if (role) {
        await run("user_role", "create", { user: id, role });
      }
      onMade(typed.username, await linkFor(id));
    } catch (error) {
      setProblem(Problem.from(error));
      setBusy(false);
    }
  };
  const field = (name: keyof typeof typed, required = false) => (
    <TextField
      name={`person-${name}`}
      label={t(name)}
      value={typed[name]}
      required={required}
      autocomplete="off"
      autocapitalize="none"
      autofocus={name === "username"}
      onInput={(event) => setTyped({ ...typed, [name]: event.currentTarget.value })}
    />
  );
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <Faults problem={problem} />
      {field("username", true)}
      {field("name")}
      {field("email")}
      <SelectField
        name="person-role"
        label={t("role")}
        value={role}
        onChange={setRole}
        options={[["", t("role.none")], ...roles.map((each) => [each.id, String(each["title"])] as const)]}
      />
      <div class="row">
        <Button type="submit" look="strong" busy={isBusy}>
          {t("invite.do")}
        </Button>
        <Button onClick={onClose}>{tCommon("cancel")}</Button>
      </div>
    </form>
  );
}

/** The invitation link, which is shown only once. */
export function InviteLink({ name, link, onDone }: { name: string; link: string; onDone: () => void }) {
  return (
    <section class="signed stack" aria-labelledby="link-made">
      <h2 id="link-made">{t("link.made", { name })}</h2>
      <p>{t("link.once")}</p>
      <div class="row">
        <code class="secret">{link}</code>
        <CopyButton text={link} of={t("link")} />
      </div>
      <div class="row">
        <Button onClick={onDone}>{t("done")}</Button>
      </div>
    </section>
  );
}
