// A drop zone for files, with a button that opens the file dialog.
import { useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

interface Props {
  accept?: string;
  hint: string;
  onFiles: (files: readonly File[]) => void;
}

export function FileDrop({ accept, hint, onFiles }: Props) {
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const handleDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    onFiles([...(event.dataTransfer?.files ?? [])]);
  };
  return (
    <div
      class={isOver ? "drop is-over" : "drop"}
      onDragOver={(event) => (event.preventDefault(), setOver(true))}
      onDragLeave={() => setOver(false)}
      onDrop={handleDrop}
    >
      <p>{hint}</p>
      <input
        type="file"
        class="hidden-text"
        tabIndex={-1}
        aria-label={hint}
        ref={input}
        multiple
        {...(accept ? { accept } : {})}
        onChange={(event) => {
          onFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
      <Button onClick={() => input.current?.click()}>{t("choose")}</Button>
    </div>
  );
}
