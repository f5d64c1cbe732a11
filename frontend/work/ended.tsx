// The session has ended while somebody worked: the page stays as it is, and goes on after a new sign-in.
import { useState } from "preact/hooks";
import { Button } from "../shared/components/button";
import { Dialog } from "../shared/components/dialog";
import { tell } from "../shared/news";
import { known } from "./person";
import { say } from "./say";
import { Signing } from "./signing";

/** Shown above the page, which stays. Who signs in as somebody else gets the page anew: what was typed is not theirs. */
export function Ended({ name }: { name: string }) {
  const [isOpen, setOpen] = useState(true);
  const signed = () => {
    const now = known.peek();
    if (now !== null && typeof now === "object" && "caller" in now && now.caller.name === name) {
      tell(say("ended.again"));
    } else {
      location.reload();
    }
  };
  return (
    <div class="notice row ended" role="alert">
      <span>{say("ended")}</span>
      <Button onClick={() => setOpen(true)}>{say("ended.sign")}</Button>
      <Dialog title={say("ended")} isOpen={isOpen} onClose={() => setOpen(false)}>
        <p>{say("ended.text")}</p>
        <Signing prefix="session-" username={name} onSigned={signed} />
      </Dialog>
    </div>
  );
}
