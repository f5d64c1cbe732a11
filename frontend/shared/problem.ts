// A refusal of the API as the pages show it: problem details (RFC 9457), or the records service's {"error": …}.
import { say } from "./say";

/** One fault in what was sent: the field it is at, where the API says so, and what is wrong. */
export interface Fault {
  field: string;
  detail: string;
}

export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly resolution: string;
  readonly faults: readonly Fault[];
  readonly retryAfterS: number | null;

  constructor(status: number, members: Record<string, unknown>, retryAfterS: number | null = null) {
    const text = (name: string): string => (typeof members[name] === "string" ? (members[name] as string) : "");
    super(text("detail") || text("error") || say("failed"));
    this.status = status;
    this.code = text("code");
    this.title = text("title");
    this.resolution = text("resolution");
    this.faults = faults(members["errors"]);
    this.retryAfterS = retryAfterS;
  }

  /** The problem of an answer that is no success. */
  static async of(answer: Response): Promise<Problem> {
    const wait = Number(answer.headers.get("retry-after"));
    const members: unknown = await answer.json().catch(() => ({}));
    const known = typeof members === "object" && members !== null ? (members as Record<string, unknown>) : {};
    return new Problem(answer.status, known, Number.isFinite(wait) && wait > 0 ? wait : null);
  }

  /** The problem that no answer came. */
  static offline(): Problem {
    return new Problem(0, { detail: say("failed.offline") });
  }
}

function faults(errors: unknown): Fault[] {
  if (!Array.isArray(errors)) {
    return [];
  }
  return errors.flatMap((each: { parameter?: string; pointer?: string; detail?: string }) =>
    each.detail ? [{ field: each.parameter ?? each.pointer?.replace(/^[#/]+/, "") ?? "", detail: each.detail }] : [],
  );
}
