// Shows the messages at the edge of the page, read aloud, with an undo button if the message has one.
import { dismissToast, toasts } from "../toast";
import { Button } from "./button";

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map((message) => (
        <div class="toast" key={message.id}>
          {message.message}
          {message.undo && (
            <Button tight onClick={() => (dismissToast(message), message.undo?.run())}>
              {message.undo.label}
            </Button>
          )}
        </div>
      ))}
    </div>
  );
}
