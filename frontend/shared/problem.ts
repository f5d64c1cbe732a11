// An error response of the API: problem details (RFC 9457), or the records service's {"error": …}.
import { reportUnreachable } from "./connectivity";
import { translator } from "./i18n";
import { signInAddress } from "./sign_in_page";

const t = translator("common");

/** An error in the input: what is wrong, and the field if the API names one. */
export interface FieldError {
  field: string;
  detail: string;
}

const OFFLINE = "offline";
const FAULT = "fault";
const SIGNED_OUT = "signed_out";

export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly resolution: string;
  readonly fieldErrors: readonly FieldError[];
  readonly retryAfterS: number | null;

  constructor(status: number, members: Record<string, unknown>, retryAfterS: number | null = null) {
    const text = (name: string): string => (typeof members[name] === "string" ? (members[name] as string) : "");
    super(text("detail") || text("error") || t("failed"));
    this.status = status;
    this.code = text("code");
    this.title = text("title");
    this.resolution = text("resolution");
    this.fieldErrors = fieldErrorsOf(members["errors"]);
    this.retryAfterS = retryAfterS;
  }

  /** The problem in an error response. */
  static async of(answer: Response): Promise<Problem> {
    if (answer.status === 401 && signInAddress()) {
      // The server's text is for programs, which send a token.
      return new Problem(401, { code: SIGNED_OUT, title: t("signed.out.title"), detail: t("signed.out") });
    }
    const wait = Number(answer.headers.get("retry-after"));
    const members: unknown = await answer.json().catch(() => ({}));
    const body = typeof members === "object" && members !== null ? (members as Record<string, unknown>) : {};
    return new Problem(answer.status, body, Number.isFinite(wait) && wait > 0 ? wait : null);
  }

  /** The problem of a request without an answer. The server is polled from now on. */
  static offline(): Problem {
    reportUnreachable();
    return new Problem(0, { code: OFFLINE, detail: t("failed.offline") });
  }

  /** Convert a thrown value to a problem. */
  static from(error: unknown): Problem {
    return error instanceof Problem ? error : new Problem(0, { code: FAULT, detail: String(error) });
  }

  /** Whether the message comes from the server, and so is English. */
  get isFromServer(): boolean {
    return this.status > 0 && this.code !== SIGNED_OUT;
  }

  /** Whether the request got no answer. */
  get isOffline(): boolean {
    return this.code === OFFLINE;
  }

  /** Whether different input could succeed. Not true for errors of the network or the server, or missing permissions. */
  get isCorrectable(): boolean {
    const isElsewhere = [OFFLINE, FAULT, SIGNED_OUT].includes(this.code) || [403, 404, 429].includes(this.status) || this.status >= 500;
    return this.fieldErrors.length > 0 || !isElsewhere;
  }
}

function fieldErrorsOf(errors: unknown): FieldError[] {
  if (!Array.isArray(errors)) {
    return [];
  }
  return errors.flatMap((error: { parameter?: string; pointer?: string; detail?: string }) =>
    error.detail ? [{ field: error.parameter ?? error.pointer?.replace(/^[#/]+/, "") ?? "", detail: error.detail }] : [],
  );
}
