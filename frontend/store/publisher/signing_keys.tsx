// The signing keys of an organisation, and their rotation.
import { useState } from "preact/hooks";
import { useRequest } from "../../shared/request";
import { Button, CopyButton } from "../../shared/components/button";
import { Chip } from "../../shared/components/chip";
import { Dialog } from "../../shared/components/dialog";
import { Empty, FailureNotice, RequestResult } from "../../shared/components/states";
import { Table } from "../../shared/components/table";
import { showToast } from "../../shared/toast";
import { translator } from "../../shared/i18n";
import { api } from "../api";
import { Curl } from "../curl";
import { idempotencyHeader, useSubmit } from "./form";

const t = translator("publisher");

export function SigningKeys({ org }: { org: string }) {
  const request = useRequest(
    async (signal) => (await api.get("/api/v1/org/signing-keys", { query: { org }, signal })).value,
    [org],
    { keepsPrevious: true },
  );
  const [isOpen, setOpen] = useState(false);
  const { isBusy, problem, run } = useSubmit();
  const rotate = () =>
    void run(async () => {
      await api.post("/api/v1/org/signing-keys", { query: { org }, headers: idempotencyHeader() });
      setOpen(false);
      showToast(t("signing.rotated"));
      request.reload();
    });
  return (
    <div class="stack">
      <p class="prose">{t("signing.text")}</p>
      <RequestResult request={request}>
        {(keys) =>
          keys.length ? (
            <Table
              caption={t("signing.of", { org })}
              rows={[...keys].reverse()}
              keyOf={(key) => key.keyid}
              columns={[
                { name: "key", label: t("signing.key"), cell: (key) => <code class="hash">{key.keyid}</code> },
                {
                  name: "state",
                  label: t("status"),
                  cell: (key) => (key === keys.at(-1) ? <Chip tone="good">{t("signing.current")}</Chip> : <Chip>{t("signing.former")}</Chip>),
                },
                { name: "copy", label: t("signing.public"), cell: (key) => <CopyButton text={key.public} name={t("signing.public.of", { key: key.keyid.slice(0, 12) })} /> },
              ]}
            />
          ) : (
            <Empty title={t("signing.none")} />
          )
        }
      </RequestResult>
      <div class="row">
        <Button onClick={() => setOpen(true)}>{t("signing.rotate")}</Button>
        <Curl method="POST" path={`/api/v1/org/signing-keys?org=${encodeURIComponent(org)}`} />
      </div>
      <Dialog
        title={t("signing.rotate.title")}
        isOpen={isOpen}
        isCautious
        onClose={() => setOpen(false)}
        actions={
          <Button variant="risky" busy={isBusy} onClick={rotate}>
            {t("signing.rotate")}
          </Button>
        }
      >
        <p>{t("signing.rotate.text")}</p>
        {problem && <FailureNotice problem={problem} />}
      </Dialog>
    </div>
  );
}
