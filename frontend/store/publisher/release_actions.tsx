// The actions of a release: delete a draft, promote or yank a published one.
import { useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { SelectField, TextField } from "../../shared/components/field";
import { FailureNotice } from "../../shared/components/states";
import { showToast } from "../../shared/toast";
import { go } from "../../shared/router";
import { api, type Schemas } from "../api";
import { Curl } from "../curl";
import { idempotencyHeader, useSubmit } from "./form";
import { channelLabel, CHANNELS, type Release } from "./releases";
import { translator } from "../../shared/i18n";

const t = translator("publisher");

interface Props {
  product: Schemas["ProductDetail"];
  release: Release;
  /** The release that customers get if this one is yanked; undefined unless this one is the newest of its channel. */
  previousRelease: Release | undefined;
  reload: () => void;
}

type Channel = Schemas["Promotion"]["channel"];

export function ReleaseActions({ product, release, previousRelease, reload }: Props) {
  const [openDialog, setOpenDialog] = useState<"" | "promote" | "yank" | "roll back" | "delete">("");
  const [reason, setReason] = useState("");
  const otherChannels = CHANNELS.filter((channel) => channel !== release.channel);
  const [channel, setChannel] = useState<Channel>(otherChannels[0] ?? "stable");
  const { isBusy, problem, run } = useSubmit();
  const values = { id: product.id, version: release.version };
  const path = `/api/v1/products/${product.slug}/releases/${encodeURIComponent(release.version)}`;
  const act = (action: () => Promise<unknown>, message: string) =>
    void run(async () => {
      await action();
      showToast(message);
      setOpenDialog("");
      reload();
    });
  const promote = () =>
    act(
      () => api.post("/api/v1/products/{id}/releases/{version}/promote", { values, body: { channel }, headers: idempotencyHeader() }),
      t("promoted", { channel }),
    );
  const yank = () =>
    act(
      () => api.post("/api/v1/products/{id}/releases/{version}/yank", { values, body: { reason }, headers: idempotencyHeader() }),
      t("release.yanked"),
    );
  const remove = () =>
    void run(async () => {
      await api.delete("/api/v1/products/{id}/releases/{version}", { values, headers: idempotencyHeader() });
      go(`/publisher/products/${product.slug}`, { replaces: true });
    });
  const takeBack = (how: "yank" | "roll back", because: string) => {
    setReason(because);
    setOpenDialog(how);
  };
  const isBack = openDialog === "roll back" && previousRelease;
  const isDraft = release.status === "draft";
  const isYanked = release.status === "yanked";
  return (
    <div class="stack">
      <div class="row">
        {isDraft && (
          <Button variant="risky" onClick={() => setOpenDialog("delete")}>
            {t("draft.delete")}
          </Button>
        )}
        {!isDraft && !isYanked && (
          <>
            <Button onClick={() => setOpenDialog("promote")}>{t("promote")}</Button>
            {previousRelease && (
              <Button onClick={() => takeBack("roll back", t("rolled.back", { version: previousRelease.version }))}>
                {t("roll.back", { version: previousRelease.version })}
              </Button>
            )}
            <Button variant="risky" onClick={() => takeBack("yank", "")}>
              {t("yank")}
            </Button>
          </>
        )}
      </div>
      {problem && !openDialog && <FailureNotice problem={problem} />}
      <Dialog
        title={t("promote")}
        isOpen={openDialog === "promote"}
        onClose={() => setOpenDialog("")}
        actions={
          <>
            <Button variant="strong" busy={isBusy} onClick={promote}>
              {t("promote")}
            </Button>
            <Curl method="POST" path={`${path}/promote`} body={{ channel }} />
          </>
        }
      >
        <p>{t("promote.text", { version: release.version })}</p>
        <SelectField
          name="channel"
          label={t("promote.to")}
          value={channel}
          options={otherChannels.map((otherChannel) => [otherChannel, channelLabel(otherChannel)] as const)}
          onChange={(value) => setChannel(value as Channel)}
        />
        {problem && <FailureNotice problem={problem} />}
      </Dialog>
      <Dialog
        title={isBack ? t("roll.back.title") : t("yank")}
        isOpen={openDialog === "yank" || openDialog === "roll back"}
        onClose={() => setOpenDialog("")}
        actions={
          <>
            <Button variant="risky" busy={isBusy} disabled={!reason.trim()} onClick={yank}>
              {isBack ? t("roll.back", { version: isBack.version }) : t("yank")}
            </Button>
            <Curl method="POST" path={`${path}/yank`} body={{ reason }} />
          </>
        }
      >
        <p>{isBack ? t("roll.back.text", { version: release.version }) : t("yank.text")}</p>
        {previousRelease && <p>{t("yank.former", { channel: release.channel, version: previousRelease.version })}</p>}
        <TextField
          name="reason"
          label={t("reason")}
          required
          value={reason}
          maxLength={1000}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
        {problem && <FailureNotice problem={problem} />}
      </Dialog>
      <Dialog
        title={t("draft.delete")}
        isOpen={openDialog === "delete"}
        onClose={() => setOpenDialog("")}
        actions={
          <>
            <Button variant="risky" busy={isBusy} onClick={remove}>
              {t("draft.delete")}
            </Button>
            <Curl method="DELETE" path={path} />
          </>
        }
      >
        <p>{t("draft.delete.text", { version: release.version })}</p>
        {problem && <FailureNotice problem={problem} />}
      </Dialog>
    </div>
  );
}
