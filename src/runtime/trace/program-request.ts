import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { hostOfUrl } from '../addresses/url-host.ts';
import { ChartpilotError, messageOf } from '../errors.ts';
import { boundedText } from '../fences/bounded-text.ts';
import { optionError } from '../option-errors.ts';
import { visibleLine } from '../visible-text.ts';
import { tokenChallenge } from './debugger-access.ts';
import { connectToProgram } from './debugger-token.ts';

export interface ProgramRequest {
  readonly url: URL;
  readonly method: string;
  readonly body?: string | undefined;
  readonly hint: string;
  /** Limit of the response body (default 256 MiB). */
  readonly maxBytes?: number;
}

export interface ProgramResponse {
  readonly status: number;
  readonly text: string;
}

const limitMs = 60_000;
/** A config_dump of a large mesh has more than 64 MiB; a string of Node has at most 512 MiB. */
const maxResponseBytes = 256 * 1024 * 1024;
const maxShownText = 200;

/**
 * Sends a request. If a program on this host responds with 401 and requires the token of the debugger, sends it again
 * with the token, if this user may read it.
 *
 * @throws ChartpilotError REQUEST_FAILED if there is no response, or one that exceeds the limit
 */
export async function requestProgram(order: ProgramRequest): Promise<ProgramResponse> {
  const { url, body, hint, maxBytes = maxResponseBytes } = order;
  const method = order.method.toUpperCase();
  try {
    const signal = AbortSignal.timeout(limitMs);
    const response = await fetch(url, { method, signal, ...(body !== undefined && { body }) });
    const result = { status: response.status, text: await boundedText(response.body ?? [], maxBytes) };
    const challenge = response.headers.get('www-authenticate');
    if (result.status !== 401 || challenge !== tokenChallenge || url.protocol !== 'http:') return result;
    return (await withToken(order, signal)) ?? result;
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new ChartpilotError('REQUEST_FAILED', `${method} ${url.href}: ${messageOf(cause)}`, { hint, cause: error });
  }
}

export interface JsonRequest<Content> {
  /** Address of the program: `http://127.0.0.1:15014`, or without scheme. */
  readonly from: string;
  readonly path: string;
  readonly hint: string;
  /** The expected response, such as `a config_dump of Envoy`. */
  readonly expected: string;
  /** Throws an error if the response has another form, as from another program. */
  readonly read: (json: unknown) => Content;
}

/** @throws ChartpilotError FLAG_INVALID with an invalid address, REQUEST_FAILED without the expected response */
export async function requestJson<Content>({
  from,
  path,
  hint,
  expected,
  read,
}: JsonRequest<Content>): Promise<Content> {
  const url = programUrl(from, path);
  const { status, text } = await requestProgram({ url, method: 'GET', hint });
  if (status !== 200)
    throw new ChartpilotError('REQUEST_FAILED', `GET ${url.href}: status ${status} ${text.trim().slice(0, 2000)}`, {
      hint,
    });
  try {
    return read(JSON.parse(text));
  } catch (error) {
    const shownText = visibleLine(text.slice(0, maxShownText));
    const problem = `response must be ${expected}, got ${shownText}${text.length > maxShownText ? '…' : ''}`;
    throw new ChartpilotError('REQUEST_FAILED', `GET ${url.href}: ${problem}`, {
      ...{ hint, cause: error },
      fields: { path: url.href, expected, got: shownText },
    });
  }
}

/** @throws ChartpilotError FLAG_INVALID with an invalid address */
export function programUrl(from: string, path: string): URL {
  const url = URL.parse(from.includes('://') ? from : `http://${from}`);
  // The URL standard reads a number as an IPv4 address.
  const isPortOnly = /^:?\d+$/.test(from);
  if (url === null || isPortOnly || !/^https?:$/.test(url.protocol)) {
    const port = isPortOnly ? from.replace(':', '') : undefined;
    throw addressError(from, port === undefined ? undefined : `Use: --from 127.0.0.1:${port}`);
  }
  if (url.href !== `${url.origin}/`) {
    throw addressError(from, `Use: --from ${from.includes('://') ? url.origin : url.host}`);
  }
  return new URL(path, url);
}

function addressError(from: string, hint: string | undefined): ChartpilotError {
  const expected = 'an address such as http://127.0.0.1:15014 or 127.0.0.1:15014';
  const got = JSON.stringify(visibleLine(from.slice(0, maxShownText)));
  const violation = { code: 'FIELD_FORMAT_INVALID', message: `must be ${expected}, got ${got}`, expected, got };
  return optionError('--from', violation, hint === undefined ? {} : { hint });
}

/** Returns `undefined` if no token of the user that accepts the connection is found. */
async function withToken(
  { url, method, body, maxBytes = maxResponseBytes }: ProgramRequest,
  signal: AbortSignal,
): Promise<ProgramResponse | undefined> {
  const { socket, token } = await connectToProgram({ host: hostOfUrl(url), port: Number(url.port || 80) });
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
  return { status: response.statusCode ?? 0, text: await boundedText(response, maxBytes) };
}
