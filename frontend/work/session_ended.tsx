// The notice that the session has ended: the page stays as it is, and continues after a new sign-in.
import { useState } from "preact/hooks";
import { Button } from "../shared/components/button";
import { Dialog } from "../shared/components/dialog";
import { showToast } from "../shared/toast";
import { currentUser } from "./current_user";
import { SignInForm } from "./sign_in_form";
import { translator } from "../shared/i18n";

const t = translator("work");

/** The sign-in dialog above the page. If another user signs in, the page reloads, because the typed text is not theirs. */
export function SessionEnded({ name }: { name: string }) {
  const [isOpen, setOpen] = useState(true);
  const handleSignIn = () => {
    const now = currentUser.peek();
    if (now !== null && typeof now === "object" && "caller" in now && now.caller.name === name) {
      showToast(t("ended.again"));
    } else {
      location.reload();
    }
  };
  return (
    <div class="notice row ended" role="alert">
      <span>{t("ended")}</span>
      <Button onClick={() => setOpen(true)}>{t("ended.sign")}</Button>
      <Dialog title={t("ended")} isOpen={isOpen} onClose={() => setOpen(false)}>
        <p>{t("ended.text")}</p>
        <SignInForm prefix="session-" username={name} onSigned={handleSignIn} />
      </Dialog>
    </div>
  );
}
