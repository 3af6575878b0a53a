/** `request METHOD PATH [BODY]`: sends an HTTP request to a program on this host (spec/agent.md §11, spec/discovery.md §1.1). */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { Command } from 'commander';
import { notAllowed, unknownValue } from '../../model/fields/violation.ts';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { optionError } from '../../runtime/option-errors.ts';
import { standardOutput } from '../../runtime/output/standard-streams.ts';
import { tokenChallenge } from '../../runtime/trace/debugger-access.ts';
import { connectToProgram } from '../../runtime/trace/debugger-token.ts';
import { addHelpSections } from './help-sections.ts';

export interface RequestTarget {
  /** For the help: `Envoy's admin interface`. */
  readonly target: string;
  readonly host: string;
  readonly defaultPort: number;
  /** Ports that `--debug-port` may name; without any there is no such flag. */
  readonly allowedPorts: readonly number[];
  readonly example: string;
  /** The program's exit code for a command that failed. */
  readonly failed: number;
}

const limitMs = 60_000;

/** The command, for the endpoint of a program. Throws ChartpilotError from its action. */
export function requestCommand(target: RequestTarget, print: (text: string) => void = printOut): Command {
  const command = new Command('request')
    .summary(`Send an HTTP request to ${target.target}`)
    .description(
      `Send an HTTP request to ${target.target} at ${target.host}:${target.defaultPort} and print the response body.`,
    )
    .argument('<method>', 'HTTP method: GET, POST, …')
    .argument('<path>', 'Path; the leading / may be omitted')
    .argument('[body]', 'Request body');
  addHelpSections(command, {
    examples: [target.example],
    exitCodes: [
      ['0', 'response received (status below 400, or 404)'],
      [String(target.failed), 'no response, or another status'],
    ],
  });
  if (target.allowedPorts.length > 0) {
    command.option('--debug-port <port>', `Port: ${target.allowedPorts.join(', ')}`, String(target.defaultPort));
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
  throw optionError('--debug-port', unknownValue(allowed.map(String), text));
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
    const violation = notAllowed(`must be omitted with method ${method.toUpperCase()}`);
    throw optionError('[body]', violation, { hint: 'Use POST or PUT, or omit the body.' });
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
      hint: 'Check that the program runs on this host and listens on this port.',
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
