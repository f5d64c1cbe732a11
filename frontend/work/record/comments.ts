// Reads and writes the comments on a record with the commands of the model `comment`.
import { runOrPropose, type Meta, type Model, type Row, run } from "../api";
import { mayRun, modelOf } from "../models";
import { ownId } from "../ownership";
import type { Person } from "./mentions";

export interface Comment extends Row {
  author: string | null;
  /** The label of the agent that wrote it. */
  agent: string | null;
  text: string;
  mentions: Person[];
  written_at: string;
  edited_at: string | null;
}

export interface Comments {
  /** The id of the signed-in person, if they may look it up. */
  me: string | undefined;
  comments: Comment[];
}

const COMMENT = "comment";
const MAX_COMMENTS = 200;

/** Whether records of the model have comments that this person may read. */
export function hasComments(meta: Meta, model: Model): boolean {
  return model.has_comments === true && commentModel(meta) !== undefined;
}

/** The model `comment`, if this person may read comments. */
export function commentModel(meta: Meta): Model | undefined {
  const model = modelOf(meta, COMMENT);
  return model && mayRun(model, "list") ? model : undefined;
}

/** The newest comments on a record. */
export async function loadComments(meta: Meta, model: Model, record: string, signal: AbortSignal): Promise<Comments> {
  if (!hasComments(meta, model)) {
    return { me: undefined, comments: [] };
  }
  const filter = [
    { field: "record", op: "eq", value: record },
    { field: "model", op: "eq", value: model.name },
  ];
  const response = await run<Comment[]>(COMMENT, "list", { filter, order: [{ field: "written_at", dir: "desc" }], limit: MAX_COMMENTS }, signal);
  return { comments: response.value, me: response.value.length ? await ownId(meta, signal) : undefined };
}

/** Write a comment. Return false if it waits for approval.
 *  @throws Problem if the service refuses it. */
export async function writeComment(model: Model, record: string, text: string): Promise<boolean> {
  return (await runOrPropose(COMMENT, "create", { model: model.name, record, text })).isDone;
}

/** @throws Problem if the service refuses it. */
export async function changeComment({ id, revision }: Comment, text: string): Promise<boolean> {
  return (await runOrPropose(COMMENT, "update", { id, revision, text })).isDone;
}

/** @throws Problem if the service refuses it. */
export async function deleteComment({ id, revision }: Comment): Promise<boolean> {
  return (await runOrPropose(COMMENT, "delete", { id, revision })).isDone;
}
