// Shows that the server cannot be reached, until it can be reached again.
import { isLost } from "../reach";
import { say } from "../say";

export function Offline() {
  return (
    <span role="status" class={isLost.value ? "chip warn" : "hidden-text"}>
      {isLost.value ? say("offline") : ""}
    </span>
  );
}
