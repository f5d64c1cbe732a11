// The choice after a token was replaced: revoke the old one, or keep both.
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { translator } from "../../shared/i18n";
import { type AgentToken, isLive } from "./agent_token";

const t = translator("agents");

export function ReplacedToken({ token, onRevoke, onDone }: { token: AgentToken; onRevoke: () => void; onDone: () => void }) {
  const text = useRef<HTMLParagraphElement>(null);
  const isOldLive = isLive(token);
  const wasOldLive = useRef(isOldLive);
  useEffect(() => {
    // The button that had the focus is gone.
    if (wasOldLive.current && !isOldLive) {
      text.current?.focus();
    }
    wasOldLive.current = isOldLive;
  }, [isOldLive]);
  return (
    <>
      <p ref={text} tabIndex={-1}>{t(isOldLive ? "replace.old" : "replace.ended")}</p>
      <div class="row">
        {isOldLive && (
          <Button variant="strong" onClick={onRevoke}>
            {t("replace.revoke")}
          </Button>
        )}
        <Button onClick={onDone}>{t(isOldLive ? "replace.keep" : "done")}</Button>
      </div>
    </>
  );
}
