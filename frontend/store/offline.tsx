// Says that there is no connection, for as long as there is none.
import { useEffect, useState } from "preact/hooks";
import { say } from "./say";

export function Offline() {
  const [isOnline, setOnline] = useState(navigator.onLine);
  useEffect(() => {
    const look = () => setOnline(navigator.onLine);
    addEventListener("online", look);
    addEventListener("offline", look);
    return () => (removeEventListener("online", look), removeEventListener("offline", look));
  }, []);
  return (
    <span role="status" class={isOnline ? "hidden-text" : "chip warn"}>
      {isOnline ? "" : say("offline")}
    </span>
  );
}
