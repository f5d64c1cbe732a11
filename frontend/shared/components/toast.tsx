// Shows the current message at the edge of the page, read aloud, with an undo button where there is one.
import { dismissToast, currentToast } from "../toast";
import { Button } from "./button";

export function Toasts() {
  const message = currentToast.value;
  return (
    <div class="toasts" role="status">
      {message && (
        <div class="toast" key={message.id}>
          {message.words}
          {message.undo && (
            <Button tight onClick={() => (dismissToast(message), message.undo?.run())}>
              {message.undo.label}
            </Button>
          )}
        </div>
      )}
    </div>
  );
}
