// A command or value with a label and a copy button.
import { CopyButton } from "../shared/components/button";

export function CommandLine({ label, text }: { label: string; text: string }) {
  return (
    <div class="line">
      <span class="small quiet">{label}</span>
      <span class="row">
        <code class="command">{text}</code>
        <CopyButton text={text} name={label} />
      </span>
    </div>
  );
}
