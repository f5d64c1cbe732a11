// Shows the news at the edge of the page, read aloud; with a way back where there is one.
import { drop, news } from "../news";
import { Button } from "./button";

export function Toasts() {
  const told = news.value;
  return (
    <div class="toasts" role="status">
      {told && (
        <div class="toast" key={told.id}>
          {told.words}
          {told.undo && (
            <Button tight onClick={() => (drop(told), told.undo?.run())}>
              {told.undo.label}
            </Button>
          )}
        </div>
      )}
    </div>
  );
}
