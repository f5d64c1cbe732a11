// Calls of the API, typed by its OpenAPI document. No credentials pass here: the server knows who is signed in.
import { Problem } from "./problem";

type Method = "get" | "put" | "post" | "patch" | "delete";
type Json<Answer> = Answer extends { content: { "application/json": infer Body } } ? Body : undefined;
type ResponseBody<Operation> = Operation extends { responses: infer Answers }
  ? { [Status in keyof Answers & (200 | 201 | 202)]: Json<Answers[Status]> }[keyof Answers & (200 | 201 | 202)]
  : never;
type Query<Operation> = Operation extends { parameters: { query?: infer Names } } ? Names : never;
type Body<Operation> = Operation extends { requestBody?: { content: { "application/json": infer Sent } } } ? Sent : never;
type PathsWithMethod<Paths, M extends Method> = {
  [Path in keyof Paths]: Paths[Path] extends Record<M, { responses: unknown }> ? Path : never;
}[keyof Paths] &
  string;

interface RequestParts<Sent> {
  body?: Sent;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export interface CallOptions<Operation> extends RequestParts<Body<Operation>> {
  /** The values of `{name}` in the path. */
  values?: Record<string, string>;
  query?: Query<Operation>;
}

export interface ApiResponse<Value> {
  value: Value;
  status: number;
  headers: Headers;
}

let sessionMark: string | null = null;

/** Send this session mark with every call from now on. If another person has signed in in another window, the server then
 *  answers as to an anonymous caller. */
export function setSessionMark(session: string): void {
  sessionMark = session;
}

let embeddedReplies: Record<string, unknown> | null = null;

/** The reply that the server embedded in this page. It is returned once; later calls must send a request. */
function takeEmbeddedReply(target: string): unknown {
  if (embeddedReplies === null) {
    const element = document.getElementById("replies");
    embeddedReplies = element === null ? {} : (JSON.parse(element.textContent ?? "{}") as Record<string, unknown>);
    element?.remove();
  }
  const reply = embeddedReplies[target];
  delete embeddedReplies[target];
  return reply;
}

/** Keep a reply that was requested before the page was drawn, for the first caller who needs it. */
export function addReply(target: string, value: unknown): void {
  takeEmbeddedReply("");
  embeddedReplies = { ...embeddedReplies, [target]: value };
}

/** The path with its values and its query, without parameters that have no value. */
export function urlFor(path: string, values: Record<string, string> = {}, query: object = {}): string {
  const filledPath = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const parameters = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(parameters.map(([name, value]) => [name, String(value)])).toString();
  return search ? `${filledPath}?${search}` : filledPath;
}

/** The answer of a request to this service.
 *  @throws Problem if the request is refused or gets no answer. The error of an abort is passed on. */
export async function send(method: string, address: string, parts: RequestParts<unknown> = {}) {
  const headers: Record<string, string> = { Accept: "application/json, application/problem+json", ...parts.headers };
  if (sessionMark !== null) {
    headers["X-Session-Mark"] = sessionMark;
  }
  const init: RequestInit = { method, headers, cache: "no-cache", credentials: "same-origin" };
  if (parts.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(parts.body);
  }
  if (parts.signal) {
    init.signal = parts.signal;
  }
  const sendOnce = async () => {
    try {
      return await fetch(address, init);
    } catch (error) {
      if (parts.signal?.aborted) {
        throw error;
      }
      throw Problem.offline();
    }
  };
  let answer = await sendOnce();
  if (answer.status === 401 && method === "GET") {
    // The session has ended since the last call: repeat the request without it, as public data needs no session.
    await answer.body?.cancel();
    answer = await sendOnce();
  }
  if (!answer.ok) {
    throw await Problem.of(answer);
  }
  return answer;
}

/** The API of a service: `Paths` is the type that openapi-typescript generates from its document. */
export class Client<Paths> {
  async get<Path extends PathsWithMethod<Paths, "get">>(
    path: Path,
    options: CallOptions<Paths[Path]["get" & keyof Paths[Path]]> = {},
  ): Promise<ApiResponse<ResponseBody<Paths[Path]["get" & keyof Paths[Path]]>>> {
    const address = urlFor(path, options.values, options.query ?? {});
    const embeddedReply = takeEmbeddedReply(address);
    if (embeddedReply !== undefined) {
      return { value: embeddedReply as never, status: 200, headers: new Headers() };
    }
    return this.readResponse(await send("GET", address, options));
  }

  async post<Path extends PathsWithMethod<Paths, "post">>(
    path: Path,
    options: CallOptions<Paths[Path]["post" & keyof Paths[Path]]> = {},
  ): Promise<ApiResponse<ResponseBody<Paths[Path]["post" & keyof Paths[Path]]>>> {
    return this.readResponse(await send("POST", urlFor(path, options.values, options.query ?? {}), options));
  }

  async put<Path extends PathsWithMethod<Paths, "put">>(
    path: Path,
    options: CallOptions<Paths[Path]["put" & keyof Paths[Path]]> = {},
  ): Promise<ApiResponse<ResponseBody<Paths[Path]["put" & keyof Paths[Path]]>>> {
    return this.readResponse(await send("PUT", urlFor(path, options.values, options.query ?? {}), options));
  }

  async patch<Path extends PathsWithMethod<Paths, "patch">>(
    path: Path,
    options: CallOptions<Paths[Path]["patch" & keyof Paths[Path]]> = {},
  ): Promise<ApiResponse<ResponseBody<Paths[Path]["patch" & keyof Paths[Path]]>>> {
    return this.readResponse(await send("PATCH", urlFor(path, options.values, options.query ?? {}), options));
  }

  async delete<Path extends PathsWithMethod<Paths, "delete">>(
    path: Path,
    options: CallOptions<Paths[Path]["delete" & keyof Paths[Path]]> = {},
  ): Promise<ApiResponse<ResponseBody<Paths[Path]["delete" & keyof Paths[Path]]>>> {
    return this.readResponse(await send("DELETE", urlFor(path, options.values, options.query ?? {}), options));
  }

  private async readResponse<Value>(answer: Response): Promise<ApiResponse<Value>> {
    const text = await answer.text();
    return { value: (text ? JSON.parse(text) : undefined) as Value, status: answer.status, headers: answer.headers };
  }
}
