// Says that there is no connection, for as long as there is none.
import { isLost } from "../reach";
import { say } from "../say";

export function Offline() {
  return (
    <span role="status" class={isLost.value ? "chip warn" : "hidden-text"}>
      {isLost.value ? say("offline") : ""}
    </span>
  );
}
