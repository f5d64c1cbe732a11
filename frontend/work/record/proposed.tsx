// Says that a command waits for approval, and where.
import { say } from "./say";

export function Proposed({ planId }: { planId: string }) {
  return (
    <p class="notice" role="status">
      {say("proposed")} <a href={`/approvals?plan=${encodeURIComponent(planId)}`}>{say("proposed.link")}</a>
    </p>
  );
}
