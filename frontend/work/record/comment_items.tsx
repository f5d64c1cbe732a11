// A comment in the timeline of a record, and the field for writing one.
import { useRef, useState } from "preact/hooks";
import { Button } from "../../shared/components/button";
import { Dialog } from "../../shared/components/dialog";
import { Icon } from "../../shared/components/icon";
import { Menu } from "../../shared/components/menu";
import { Problem } from "../../shared/problem";
import { showToast } from "../../shared/toast";
import { dateTime, translator } from "../../shared/i18n";
import type { Meta, Model } from "../api";
import { fieldOf, mayRun, modelOf } from "../models";
import { referencedRecord } from "../referenced_records";
import { AgentAvatar, Avatar } from "../values/avatar";
import { Value } from "../values/value";
import { changeComment, type Comment, commentModel, deleteComment, hasComments, writeComment } from "./comments";
import { useDraft } from "./draft";
import { eventTime } from "./event_time";
import { CommentText, MentionList, type Subject, useMentionList } from "./mentions";
import "../values/picker.css";

const tCommon = translator("common");
const t = translator("record");

const NEW_COMMENT_ID = "new-comment";
/** The maximum number of rows of the field in browsers that cannot fit its height to the text. */
const MAX_ROWS = 8;

/** Run the function. If it is refused, show a toast and return false. */
async function withErrorToast(action: () => Promise<boolean>): Promise<boolean> {
  try {
    if (!(await action())) {
      showToast(t("proposed"));
    }
    return true;
  } catch (error) {
    showToast(Problem.from(error).message);
    return false;
  }
}

interface CommentEditorProps {
  id: string;
  subject: Subject;
  label: string;
  text: string;
  saveLabel: string;
  onText: (text: string) => void;
  onSave: () => Promise<void>;
  onCancel?: () => void;
}

/** The editor of a comment. Ctrl-Enter saves it, and `@` completes a name. */
function CommentEditor({ id, subject, label, text, saveLabel, onText, onSave, onCancel }: CommentEditorProps) {
  const [isBusy, setBusy] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const list = useMentionList(area, subject, onText);
  const listId = `${id}-people`;
  const save = async () => {
    if (text.trim() && !isBusy) {
      setBusy(true);
      await onSave();
      setBusy(false);
    }
  };
  const handleKeyDown = (event: KeyboardEvent) => {
    if (list.handleKey(event)) {
      return;
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void save();
    } else if (event.key === "Escape" && onCancel) {
      event.stopPropagation();
      onCancel();
    }
  };
  return (
    <form class="comment-form" onSubmit={(event) => (event.preventDefault(), void save())}>
      <div class="picker">
        <textarea
          id={id}
          ref={area}
          class="input"
          aria-autocomplete="list"
          aria-controls={listId}
          aria-activedescendant={list.isOpen ? `${listId}-${list.activeIndex}` : undefined}
          rows={Math.min(MAX_ROWS, text.split("\n").length)}
          maxLength={10_000}
          aria-label={label}
          placeholder={label}
          value={text}
          onInput={(event) => (onText(event.currentTarget.value), list.update(event.currentTarget))}
          onKeyDown={handleKeyDown}
          onBlur={list.close}
        />
        <MentionList id={listId} list={list} />
      </div>
      {(text !== "" || onCancel) && (
        <div class="row">
          <Button type="submit" tight busy={isBusy}>
            {saveLabel}
            <kbd>{t("comment.key")}</kbd>
          </Button>
          {onCancel && (
            <Button tight variant="plain" onClick={onCancel}>
              {tCommon("cancel")}
            </Button>
          )}
        </div>
      )}
    </form>
  );
}

/** The field for a new comment. Its text survives a reload and the end of the session. */
export function NewComment({ meta, model, id, onWritten }: { meta: Meta; model: Model; id: string; onWritten: () => void }) {
  const draft = useDraft(`comment:${model.name}/${id}`);
  const comments = commentModel(meta);
  if (!comments || !hasComments(meta, model) || !mayRun(comments, "create")) {
    return null;
  }
  const text = draft.texts["text"] ?? "";
  const write = async () => {
    if (await withErrorToast(() => writeComment(model, id, text.trim()))) {
      draft.drop();
      onWritten();
      document.getElementById(NEW_COMMENT_ID)?.focus();
    }
  };
  const changeText = (newText: string) => (newText ? draft.set("text", newText) : draft.unset("text"));
  return (
    <div class="new-comment">
      <Avatar name={meta.caller.name} size="m" />
      <CommentEditor id={NEW_COMMENT_ID} subject={{ model: model.name, record: id }} label={t("comment.write")} saveLabel={t("comment.save")} text={text} onText={changeText} onSave={write} />
    </div>
  );
}

/** Focus the element after the comment is shown again. */
function focusLater(selector: string): void {
  setTimeout(() => document.querySelector<HTMLElement>(selector)?.focus(), 0);
}

interface CommentItemProps {
  meta: Meta;
  subject: Subject;
  comment: Comment;
  isOwn: boolean;
  onChanged: () => void;
}

export function CommentItem({ meta, subject, comment, isOwn, onChanged }: CommentItemProps) {
  const [editedText, setEditedText] = useState<string | null>(null);
  const [isDeleting, setDeleting] = useState(false);
  const userModel = modelOf(meta, "user");
  const author = userModel && comment.author ? referencedRecord(userModel, comment.author).value : null;
  const name = author ? String(author["username"] ?? "") : "";
  const field = fieldOf(commentModel(meta), "text");
  const close = () => {
    setEditedText(null);
    focusLater(`#comment-${comment.id} .menu button`);
  };
  const save = async () => {
    if (await withErrorToast(() => changeComment(comment, (editedText ?? "").trim()))) {
      close();
      onChanged();
    }
  };
  const remove = async () => {
    setDeleting(false);
    if (await withErrorToast(() => deleteComment(comment))) {
      onChanged();
      focusLater(`#${NEW_COMMENT_ID}`);
    }
  };
  const edit = () => {
    setEditedText(comment.text);
    focusLater(`#text-${comment.id}`);
  };
  return (
    <li id={`comment-${comment.id}`}>
      {comment.agent === null ? <Avatar name={name || "–"} /> : <AgentAvatar />}
      <div>
        <p>
          <strong>{comment.agent ?? (name || t("history.someone"))}</strong>
          {comment.agent !== null && name && ` ${t("history.for", { name })}`} {t("comment.did")}{" "}
          <time class="quiet" dateTime={comment.written_at} title={dateTime(comment.written_at)}>
            {eventTime(comment.written_at)}
          </time>
          {comment.edited_at !== null && (
            <span class="quiet" title={dateTime(comment.edited_at)}>
              {" "}
              · {t("comment.edited")}
            </span>
          )}
          {isOwn && editedText === null && (
            <span class="comment-menu">
              <Menu
                label={t("comment.more")}
                opener={<Icon name="ellipsis" size="s" />}
                items={[
                  { label: t("comment.edit"), icon: "pencil", does: edit },
                  { label: t("comment.delete"), icon: "trash-2", does: () => setDeleting(true) },
                ]}
              />
            </span>
          )}
        </p>
        {editedText === null ? (
          <p class="comment-text">{field?.masked ? <Value meta={meta} field={field} value={comment.text} /> : <CommentText text={comment.text} mentions={comment.mentions} />}</p>
        ) : (
          <CommentEditor id={`text-${comment.id}`} subject={subject} label={t("comment.edit")} saveLabel={t("save")} text={editedText} onText={setEditedText} onSave={save} onCancel={close} />
        )}
      </div>
      <Dialog
        title={t("comment.delete.title")}
        isOpen={isDeleting}
        onClose={() => setDeleting(false)}
        isCautious
        actions={
          <Button variant="risky" onClick={() => void remove()}>
            {t("comment.delete")}
          </Button>
        }
      >
        <p>{t("comment.delete.text")}</p>
      </Dialog>
    </li>
  );
}
