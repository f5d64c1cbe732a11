// The form for a new person: user name and role; then the link to set a password. The input stays in the tab until it is sent.
import { useEffect, useRef, useState } from "preact/hooks";
import { Button, CopyButton } from "../../shared/components/button";
import { FormErrors, SelectField, TextField } from "../../shared/components/field";
import { Problem } from "../../shared/problem";
import { type Row, run } from "../api";
import { useDraft } from "../record/draft";
import { linkFor, roleName } from "./people";
import { translator } from "../../shared/i18n";

const tCommon = translator("common");
const t = translator("users");

const FIELDS = ["username", "name", "email"] as const;

interface Props {
  roles: readonly Row[];
  onMade: (username: string, link: string) => void;
  onClose: () => void;
}

export function InviteForm({ roles, onMade, onClose }: Props) {
  const draft = useDraft("users/invite");
  const { role = "", made: createdId = "", made_for: madeFor = "", made_role: madeRole = "", ...typedTexts } = draft.texts;
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const values = Object.fromEntries(FIELDS.flatMap((name) => (typedTexts[name] ? [[name, typedTexts[name]]] : [])));
      const person = JSON.stringify(values);
      // The user created by an attempt that then failed at a role or the link; the next attempt continues from there, unless
      // the form is about another person now.
      const isMade = createdId !== "" && madeFor === person;
      const id = isMade ? createdId : (await run<Row>("user", "create", values)).value.id;
      draft.set("made", id);
      draft.set("made_for", person);
      await giveRole(id, role, isMade ? madeRole : "");
      draft.set("made_role", role);
      const link = await linkFor(id);
      draft.drop();
      onMade(typedTexts["username"] ?? "", link);
    } catch (error) {
      setProblem(Problem.from(error));
      setBusy(false);
    }
  };
  const field = (name: (typeof FIELDS)[number], isRequired = false) => (
    <TextField
      name={`person-${name}`}
      label={t(name)}
      value={typedTexts[name] ?? ""}
      required={isRequired}
      autocomplete="off"
      autocapitalize="none"
      autofocus={name === "username"}
      onInput={(event) => draft.set(name, event.currentTarget.value)}
    />
  );
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <FormErrors problem={problem} />
      {field("username", true)}
      {field("name")}
      {field("email")}
      <SelectField
        name="person-role"
        label={t("role")}
        value={role}
        onChange={(newRole) => draft.set("role", newRole)}
        options={[["", t("role.none")], ...roles.map((role) => [role.id, roleName(role)] as const)]}
      />
      <div class="row">
        <Button type="submit" variant="strong" busy={isBusy}>
          {t("invite.do")}
        </Button>
        <Button onClick={() => (draft.drop(), onClose())}>{tCommon("cancel")}</Button>
      </div>
    </form>
  );
}

/** Add the role to the user, unless an earlier attempt added it. Remove another role that an earlier attempt added. */
async function giveRole(user: string, role: string, earlierRole: string): Promise<void> {
  if (role || earlierRole) {
    const filter = [{ field: "user", op: "eq", value: user }];
    const memberships = (await run<Row[]>("user_role", "list", { filter })).value;
    const earlierMembership = memberships.find((membership) => earlierRole !== role && membership["role"] === earlierRole);
    if (earlierMembership) {
      await run("user_role", "delete", { id: earlierMembership.id });
    }
    if (role && !memberships.some((membership) => membership["role"] === role)) {
      await run("user_role", "create", { user, role });
    }
  }
}

/** The invitation link, which is shown only once. */
export function InviteLink({ name, link, onDone }: { name: string; link: string; onDone: () => void }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [link]);
  return (
    <section class="signed stack" aria-labelledby="link-made">
      <h2 id="link-made" tabIndex={-1} ref={heading}>{t("link.made", { name })}</h2>
      <p>{t("link.once")}</p>
      <div class="row">
        <code class="secret">{link}</code>
        <CopyButton text={link} name={t("link")} />
      </div>
      <div class="row">
        <Button onClick={onDone}>{t("done")}</Button>
      </div>
    </section>
  );
}
