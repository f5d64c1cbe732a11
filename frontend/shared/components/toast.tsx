// Shows the news at the edge of the page, read aloud; with a way back where there is one.
import { drop, news } from "../news";
import { Button } from "./button";

export function Toasts() {
  const message = news.value;
  return (
    <div class="toasts" role="status">
      {message && (
        <div class="toast" key={message.id}>
          {message.words}
          {message.undo && (
            <Button tight onClick={() => (drop(message), message.undo?.run())}>
              {message.undo.label}
            </Button>
          )}
        </div>
      )}
    </div>
  );
}
