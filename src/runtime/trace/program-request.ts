import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { ChartpilotError, messageOf } from '../errors.ts';
import { tokenChallenge } from './debugger-access.ts';
import { connectToProgram } from './debugger-token.ts';

export interface ProgramRequest {
  readonly url: URL;
  readonly method: string;
  readonly body?: string | undefined;
  readonly hint: string;
}

export interface ProgramResponse {
  readonly status: number;
  readonly text: string;
}

const limitMs = 60_000;

/**
 * If a program on this host requires the token of the debugger (401), sends the request again with the token, if this user may read it.
 * @throws ChartpilotError REQUEST_FAILED if there is no response
 */
export async function requestProgram(order: ProgramRequest): Promise<ProgramResponse> {
  const { url, body, hint } = order;
  const method = order.method.toUpperCase();
  try {
    const signal = AbortSignal.timeout(limitMs);
    const response = await fetch(url, { method, signal, ...(body !== undefined && { body }) });
    const result = { status: response.status, text: await response.text() };
    const challenge = response.headers.get('www-authenticate');
    if (result.status !== 401 || challenge !== tokenChallenge || url.protocol !== 'http:') return result;
    return (await withToken(order, signal)) ?? result;
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new ChartpilotError('REQUEST_FAILED', `${method} ${url.href}: ${messageOf(cause)}`, { hint, cause: error });
  }
}

/** @throws ChartpilotError REQUEST_FAILED if the response is not JSON */
export async function requestJson(from: string, path: string, hint: string): Promise<unknown> {
  const url = programUrl(from, path);
  const { status, text } = await requestProgram({ url, method: 'GET', hint });
  if (status !== 200) throw new ChartpilotError('REQUEST_FAILED', `GET ${url.href}: status ${status} ${text.trim()}`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ChartpilotError('REQUEST_FAILED', `GET ${url.href}: response must be JSON`, { cause: error });
  }
}

/** @throws ChartpilotError FLAG_INVALID with an invalid address */
export function programUrl(from: string, path: string): URL {
  try {
    return new URL(path, from.includes('://') ? from : `http://${from}`);
  } catch (error) {
    throw new ChartpilotError(
      'FLAG_INVALID',
      `--from: must be an address such as http://127.0.0.1:15014, got ${from}`,
      {
        cause: error,
      },
    );
  }
}

/** Returns `undefined` if the user that accepts the connection has no token that this user finds. */
async function withToken(
  { url, method, body }: ProgramRequest,
  signal: AbortSignal,
): Promise<ProgramResponse | undefined> {
  const { socket, token } = await connectToProgram({ host: url.hostname, port: Number(url.port || 80) });
  if (token === undefined) {
    socket.destroy();
    return undefined;
  }
  const headers = { authorization: `Bearer ${token}`, host: url.host };
  const options = { path: url.pathname + url.search, method: method.toUpperCase(), headers, signal };
  // Node uses the given connection only if no agent is set.
  const clientRequest = request({ ...options, createConnection: () => socket });
  clientRequest.end(body);
  const [response] = (await once(clientRequest, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, text: await textOf(response) };
}
