// Shows the news at the edge of the page, read aloud; with a way back where there is one.
import { drop, news } from "../news";
import { Button } from "./button";

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {news.value.map((each) => (
        <div class="toast" key={each.words}>
          {each.words}
          {each.undo && (
            <Button tight onClick={() => (drop(each), each.undo?.run())}>
              {each.undo.label}
            </Button>
          )}
        </div>
      ))}
    </div>
  );
}
