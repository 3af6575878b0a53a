import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { connectToProgram, type ProgramConnection } from '../../runtime/trace/debugger-token.ts';
import type { TraceHeader } from '../../runtime/trace/trace.ts';
import { tracePath } from '../../runtime/trace/trace-endpoint.ts';
import { LineSplitter, LineTooLong } from '../trace/line-splitter.ts';
import { TraceLineReader } from '../trace/trace-line.ts';
import { formatLiveAddress, type LiveAddress } from './live-address.ts';
import type { PageSource } from './page-source.ts';

export interface LiveSourceOptions {
  readonly name?: string;
  /** Default: the token in the program's run directory, if the file belongs to the program's user. */
  readonly token?: string;
  /** Default: each default directory of the programs. */
  readonly runDir?: string;
}

const responseLimitMs = 5_000;

/** The program may restart: every read opens a new connection. */
export function liveSource(address: LiveAddress, options: LiveSourceOptions = {}): PageSource {
  const addressText = formatLiveAddress(address);
  return {
    name: options.name ?? addressText,
    kind: 'live',
    place: addressText,
    header: async () => {
      const trace = await request(address, options, false);
      const limit = setTimeout(
        () => trace.destroy(new Error(`no complete line within ${responseLimitMs} ms`)),
        responseLimitMs,
      );
      try {
        return await firstLine(trace, addressText);
      } finally {
        clearTimeout(limit);
        trace.destroy();
      }
    },
    read: ({ follow }) => request(address, options, follow),
  };
}

/** The caller must read or destroy the response. */
async function request(
  address: LiveAddress,
  options: LiveSourceOptions,
  isFollowing: boolean,
): Promise<IncomingMessage> {
  const { runDir } = options;
  // A restarted program has another token.
  const connection = await connectToProgram(address, runDir === undefined ? {} : { runDir }).catch((error: unknown) => {
    throw unreachableError(address, error);
  });
  const token = options.token ?? connection.token;
  const clientRequest = get({
    ...address,
    path: isFollowing ? tracePath : `${tracePath}?follow=false`,
    // Node calls this only without an agent. The owner of the connection was checked; the connection ends with the response.
    createConnection: () => connection.socket,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  });
  // Once the response has begun, its own events report errors.
  clientRequest.on('error', () => {});
  const limit = setTimeout(
    () => clientRequest.destroy(new Error(`no response within ${responseLimitMs} ms`)),
    responseLimitMs,
  );
  let response: IncomingMessage;
  try {
    [response] = (await once(clientRequest, 'response')) as [IncomingMessage];
  } catch (error) {
    throw unreachableError(address, error);
  } finally {
    clearTimeout(limit);
  }
  if (response.statusCode !== 200)
    throw await responseError(response, address, { token, rejected: connection.rejected });
  return response;
}

function unreachableError(address: LiveAddress, error: unknown): ChartpilotError {
  return new ChartpilotError('REQUEST_FAILED', `${formatLiveAddress(address)}: ${messageOf(error)}`, {
    hint: 'check that the program runs, and that this is its port (--statusPort of pilot-agent, --monitoringAddr of pilot-discovery)',
    cause: error,
  });
}

interface TokenSearchResult extends Pick<ProgramConnection, 'rejected'> {
  readonly token: string | undefined;
}

async function responseError(
  response: IncomingMessage,
  address: LiveAddress,
  search: TokenSearchResult,
): Promise<ChartpilotError> {
  const status = response.statusCode ?? 0;
  const body = (await text(response).catch(() => '')).slice(0, 500).trim();
  return new ChartpilotError(
    'REQUEST_FAILED',
    `${formatLiveAddress(address)} responded with status ${status}${body === '' ? '' : `: ${body}`}`,
    {
      hint: hintFor(status, address, search),
    },
  );
}

function hintFor(status: number, { port }: LiveAddress, { token, rejected }: TokenSearchResult): string {
  if (status === 401) {
    const problem =
      token === undefined ? 'a token is required, and this user can read none' : 'the program rejects this token';
    const rejectedText = rejected.length === 0 || token !== undefined ? '' : ` (not used: ${rejected.join('; ')})`;
    return `${problem}${rejectedText}; set CHARTPILOT_TOKEN to the content of debugger-${port}.token in the run directory of the program, or use --token, which other users of this host can read`;
  }
  if (status === 404)
    return 'no trace at this port; check the port, and that the program does not run with --debugger off';
  return 'connect from this host, without a proxy';
}

const portHint = 'use the port of --statusPort (pilot-agent) or --monitoringAddr (pilot-discovery)';

async function firstLine(trace: IncomingMessage, address: string): Promise<TraceHeader> {
  const line = await firstText(trace, address);
  const header = line instanceof LineTooLong ? line.message : new TraceLineReader().read(line);
  if (typeof header !== 'string' && header.kind === 'header') return header;
  const detail = typeof header === 'string' ? `: ${header}` : '';
  throw new ChartpilotError('TRACE_INVALID', `${address}: expected a trace${detail}`, { hint: portHint });
}

/** The text has a limit, because any server may use the port. */
async function firstText(trace: IncomingMessage, address: string): Promise<string | LineTooLong> {
  trace.setEncoding('utf8');
  const lineSplitter = new LineSplitter();
  try {
    for await (const chunk of trace as AsyncIterable<string>) {
      lineSplitter.push(chunk);
      const line = lineSplitter.nextLine();
      if (line !== undefined) return line;
    }
  } catch (error) {
    if (error instanceof LineTooLong) return error;
    throw new ChartpilotError('REQUEST_FAILED', `${address}: ${messageOf(error)}`, { hint: portHint, cause: error });
  }
  return lineSplitter.takeRemainder();
}
