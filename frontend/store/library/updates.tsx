// The available updates, each with a download button, and a button that downloads all.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { Problem } from "../../shared/problem";
import { showToast } from "../../shared/toast";
import { plural, translator } from "../../shared/i18n";
import type { Schemas } from "../api";
import { download } from "./download_now";
import { UpdateCard } from "./library_card";
import { updateOf } from "./newer_version";

const tLibrary = translator("library");
const t = translator("store");

type OwnedProduct = Schemas["Owned"];

interface Props {
  updates: readonly OwnedProduct[];
  onOpen: (product: OwnedProduct) => void;
}

export function Updates({ updates, onOpen }: Props) {
  const [isBusy, setBusy] = useState(false);
  const downloadAll = async () => {
    setBusy(true);
    const failedTitles: string[] = [];
    let problem: Problem | null = null;
    for (const update of updates) {
      try {
        if (!(await download(update, updateOf(update)?.channel))) {
          failedTitles.push(update.title);
        }
      } catch (error) {
        problem = Problem.from(error);
        failedTitles.push(update.title);
      }
    }
    setBusy(false);
    const doneCount = updates.length - failedTitles.length;
    const parts = [
      doneCount > 0 && plural(doneCount, tLibrary("updates.started.one"), tLibrary("updates.started.many")),
      problem ? problem.message : failedTitles.length > 0 && tLibrary("updates.other", { titles: failedTitles.join(", ") }),
    ];
    showToast(parts.filter(Boolean).join(" "));
  };
  return (
    <section class="library-section" aria-labelledby="updates">
      <div class="toolbar">
        <h2 id="updates">{tLibrary("updates.available")}</h2>
        <span class="quiet wide-only">{plural(updates.length, t("library.one"), t("library.many"))}</span>
        {(updates.length > 1 || isBusy) && (
          <span class="right row">
            <Button busy={isBusy} onClick={downloadAll}>
              <Icon name="download" />
              {tLibrary("updates.all")}
            </Button>
          </span>
        )}
      </div>
      <ul class="updates">
        {updates.map((update) => (
          <UpdateCard key={update.id} product={update} onOpen={onOpen} />
        ))}
      </ul>
    </section>
  );
}
