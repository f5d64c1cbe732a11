// The bar above a record: the path to it, links to the previous and next record, and a menu of rare actions.
import { useLayoutEffect } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Icon } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { useRequest } from "../../shared/request";
import { go } from "../../shared/router";
import { registerShortcut } from "../../shared/shortcuts";
import { number, translator } from "../../shared/i18n";
import type { Model, Row } from "../api";
import { copyText } from "../list/curl";
import { addressOfList, addressOfNeighbour, currentPosition, totalOf } from "../list/list_position";
import { addressOf } from "../models";
import { FavouriteButton } from "../shell/favourite_button";
import { editRecord } from "./edit_request";

const tWork = translator("work");
const t = translator("record");

interface Props {
  model: Model;
  record: Row;
  title: string;
  onDelete: (() => void) | null;
}

export function RecordBar({ model, record, title, onDelete }: Props) {
  const position = currentPosition(model);
  const totalRequest = useRequest(async (signal) => (position ? totalOf(model, position, signal) : null), [model.name, JSON.stringify(position?.input)]);
  const total = totalRequest.state === "loaded" ? totalRequest.value : null;
  const move = async (step: 1 | -1) => {
    const neighbourAddress = position && (await addressOfNeighbour(model, position, step));
    if (neighbourAddress) {
      go(neighbourAddress, { replaces: true });
    }
  };
  const copyLink = () => void copyText(new URL(addressOf(model.name, record.id), location.href).href);
  useLayoutEffect(() => {
    const unregisters = [
      registerShortcut({ key: "j", does: t("next"), run: () => void move(1) }),
      registerShortcut({ key: "k", does: t("previous"), run: () => void move(-1) }),
    ];
    return () => unregisters.forEach((unregister) => unregister());
  });
  const edit = editRecord.value;
  return (
    <div class="page-head">
      <nav class="crumbs" aria-label={tWork("crumb")}>
        <a href={addressOfList(model)}>{t("back", { model: model.plural })}</a>
        <Icon name="chevron-right" size="s" />
        <span class="cut" aria-current="page">
          {title}
        </span>
      </nav>
      <div class="head-end">
        {position && (
          <>
            {total !== null && <span class="quiet record-place">{t("place", { n: number(position.index + 1), of: number(total) })}</span>}
            <Button size="square tight" variant="plain" aria-label={t("previous")} title={t("previous")} disabled={position.index === 0} onClick={() => void move(-1)}>
              <Icon name="chevron-up" />
            </Button>
            <Button size="square tight" variant="plain" aria-label={t("next")} title={t("next")} disabled={total !== null && position.index >= total - 1} onClick={() => void move(1)}>
              <Icon name="chevron-down" />
            </Button>
          </>
        )}
        <FavouriteButton path={addressOf(model.name, record.id)} name={title} />
        <Button size="square tight" variant="plain" aria-label={t("link.copy")} title={t("link.copy")} onClick={copyLink}>
          <Icon name="link" />
        </Button>
        <Menu
          label={t("more")}
          opener={<Icon name="ellipsis" />}
          items={[
            ...(edit ? [{ label: t("edit"), icon: "pencil" as const, does: edit }] : []),
            ...(onDelete ? [{ label: t("delete"), icon: "trash-2" as const, does: onDelete }] : []),
            { label: t("link.copy"), icon: "link", does: copyLink },
          ]}
        />
      </div>
    </div>
  );
}
