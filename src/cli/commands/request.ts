/** `request METHOD PATH [BODY]`: asks a program of this host over HTTP (spec/agent.md §11, spec/discovery.md §1.1). */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { Command } from 'commander';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { standardOutput } from '../../runtime/output/standard-streams.ts';
import { tokenChallenge } from '../../runtime/trace/debugger-access.ts';
import { connectToProgram } from '../../runtime/trace/debugger-token.ts';

export interface RequestTarget {
  /** What is asked, for the help: `Envoy's admin interface`. */
  readonly what: string;
  readonly host: string;
  readonly defaultPort: number;
  /** Ports that `--debug-port` may name; without any there is no such flag. */
  readonly allowedPorts: readonly number[];
  readonly example: string;
  /** The program's exit code for a command that failed. */
  readonly failed: number;
}

const limitMs = 60_000;

/** The command, parameterised by whom a program may ask. Throws ChartpilotError from its action. */
export function requestCommand(target: RequestTarget, print: (text: string) => void = printOut): Command {
  const command = new Command('request')
    .summary(`ask ${target.what}`)
    .description(
      `Sends an HTTP request to ${target.what} at ${target.host}:${target.defaultPort} and prints the answer's body.\n\n` +
        `Exit code: 0 answered (a 404 too), ${target.failed} no answer or a status of 400 and above.`,
    )
    .argument('<method>', 'GET, POST, …')
    .argument('<path>', 'the leading / may be left out')
    .argument('[body]', 'sent with the request')
    .addHelpText('after', `\nExample:\n  ${target.example}`);
  if (target.allowedPorts.length > 0) {
    command.option('--debug-port <port>', `port to ask: ${target.allowedPorts.join(', ')}`, String(target.defaultPort));
  }
  return command.action(async (method: string, path: string, body: string | undefined, options: object) => {
    const { debugPort } = options as { debugPort?: string };
    const port = debugPort === undefined ? target.defaultPort : allowedPort(debugPort, target.allowedPorts);
    print(await requestBody({ host: target.host, port, path: `/${path.replace(/^\//, '')}`, method, body }));
  });
}

function allowedPort(text: string, allowed: readonly number[]): number {
  const port = Number(text);
  if (allowed.includes(port)) return port;
  throw new ChartpilotError('FLAG_INVALID', `--debug-port ${text} may not be asked`, {
    hint: `Allowed are ${allowed.join(', ')}.`,
  });
}

interface PageRequest {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly method: string;
  readonly body: string | undefined;
}

interface PageResponse {
  readonly status: number;
  readonly text: string;
}

async function requestBody(page: PageRequest): Promise<string> {
  const { host, port, path, method, body } = page;
  const url = `http://${host}:${port}${path}`;
  if (body !== undefined && /^(get|head)$/i.test(method)) {
    throw new ChartpilotError('FLAG_INVALID', `${method} sends no body`, { hint: 'Say POST or PUT, or leave it out.' });
  }
  let answer: PageResponse;
  try {
    const signal = AbortSignal.timeout(limitMs);
    const response = await fetch(url, { method: method.toUpperCase(), signal, ...(body !== undefined && { body }) });
    answer = { status: response.status, text: await response.text() };
    const realm = response.headers.get('www-authenticate');
    if (answer.status === 401 && realm === tokenChallenge) answer = (await withToken(page, signal)) ?? answer;
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new ChartpilotError('REQUEST_FAILED', `${method} ${url}: ${messageOf(cause)}`, {
      hint: 'Is the program running on this host, and is this its port?',
      cause: error,
    });
  }
  const { status, text } = answer;
  if (status >= 400 && status !== 404) {
    throw new ChartpilotError('REQUEST_FAILED', `${method} ${url}: status ${status} ${text.trim()}`);
  }
  return text;
}

/** On a connection whose accepting user owns the token. @returns `undefined` if this user finds no token */
async function withToken(page: PageRequest, signal: AbortSignal): Promise<PageResponse | undefined> {
  const { host, port, path, method, body } = page;
  const { socket, token } = await connectToProgram({ host, port });
  if (token === undefined) {
    socket.destroy();
    return undefined;
  }
  const headers = { authorization: `Bearer ${token}` };
  const options = { host, port, path, method: method.toUpperCase(), headers, signal } as const;
  // Node takes the connection only where no agent is named.
  const asked = request({ ...options, createConnection: () => socket });
  asked.end(body);
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, text: await textOf(response) };
}

function printOut(text: string): void {
  standardOutput.print(text.endsWith('\n') || text === '' ? text : `${text}\n`);
}
