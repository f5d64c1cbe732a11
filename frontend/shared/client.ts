// Sends requests to the API. The types come from its OpenAPI document. The browser adds the session cookie itself.
import { Problem } from "./problem";

type Method = "get" | "put" | "post" | "patch" | "delete";
type JsonBody<Reply> = Reply extends { content: { "application/json": infer Body } } ? Body : undefined;
type ResponseBody<Operation> = Operation extends { responses: infer Responses }
  ? { [Code in keyof Responses & (200 | 201 | 202)]: JsonBody<Responses[Code]> }[keyof Responses & (200 | 201 | 202)]
  : never;
type Query<Operation> = Operation extends { parameters: { query?: infer Parameters } } ? Parameters : never;
type Body<Operation> = Operation extends { requestBody?: { content: { "application/json": infer Sent } } } ? Sent : never;
type PathsWithMethod<Paths, RequestMethod extends Method> = {
  [Path in keyof Paths]: Paths[Path] extends Record<RequestMethod, { responses: unknown }> ? Path : never;
}[keyof Paths] &
  string;

interface RequestParts<RequestBody> {
  body?: RequestBody;
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

/** Send this session mark with every later request. If another person signs in in another window, the session mark no
 *  longer fits the session cookie, and the server treats the caller as anonymous. */
export function setSessionMark(session: string): void {
  sessionMark = session;
}

let embeddedReplies: Record<string, unknown> | null = null;

/** Return the reply for this address that the page contains, or undefined. Each reply is returned only once. */
function takeEmbeddedReply(address: string): unknown {
  if (embeddedReplies === null) {
    const element = document.getElementById("replies");
    embeddedReplies = element === null ? {} : (JSON.parse(element.textContent ?? "{}") as Record<string, unknown>);
    element?.remove();
  }
  const reply = embeddedReplies[address];
  delete embeddedReplies[address];
  return reply;
}

/** Store a reply that was requested before the page was drawn. The first `get` of this address returns it. */
export function addReply(address: string, value: unknown): void {
  takeEmbeddedReply("");
  embeddedReplies = { ...embeddedReplies, [address]: value };
}

/** Return the path with the values in place of its `{name}` parts, and with the query. Empty parameters are omitted. */
export function urlFor(path: string, values: Record<string, string> = {}, query: object = {}): string {
  const filledPath = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const parameters = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(parameters.map(([name, value]) => [name, String(value)])).toString();
  return search ? `${filledPath}?${search}` : filledPath;
}

/** Send a request to this service and return the response.
 *  @throws Problem if the service refuses the request or does not respond. The error of an abort is thrown as it is. */
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
  let response = await sendOnce();
  if (response.status === 401 && method === "GET") {
    // The session ended after the previous request, and this response deleted its cookie. Without the cookie, the same
    // request returns what an anonymous visitor may see.
    await response.body?.cancel();
    response = await sendOnce();
  }
  if (!response.ok) {
    throw await Problem.of(response);
  }
  return response;
}

/** A client for the API of one service. `Paths` is the type that openapi-typescript generates from its document. */
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

  private async readResponse<Value>(response: Response): Promise<ApiResponse<Value>> {
    const text = await response.text();
    const value = (text ? JSON.parse(text) : undefined) as Value;
    return { value, status: response.status, headers: response.headers };
  }
}
