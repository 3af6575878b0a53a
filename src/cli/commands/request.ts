import { Command } from 'commander';
import { disallowedValue, mustBe, unknownValue } from '../../model/fields/violation.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { optionError } from '../../runtime/option-errors.ts';
import { standardOutput } from '../../runtime/output/standard-streams.ts';
import { programUrl, requestProgram } from '../../runtime/trace/program-request.ts';
import { addHelpSections } from './help-sections.ts';
import { addFromFlag } from './remote/remote-view.ts';

export interface RequestTarget {
  /** Name in the help, such as `Envoy's admin interface`. */
  readonly target: string;
  readonly host: string;
  readonly defaultPort: number;
  /** Ports that `--debug-port` accepts; if empty, the flag does not exist. */
  readonly allowedPorts: readonly number[];
  readonly acceptsFrom?: true;
  readonly example: string;
  readonly failed: number;
}

/** The action throws ChartpilotError. */
export function requestCommand(target: RequestTarget, print: (text: string) => void = writeStdout): Command {
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
  if (target.acceptsFrom) addFromFlag(command);
  return command.action(async (method: string, path: string, body: string | undefined, flags: RequestFlags) => {
    if (addressPattern.test(path)) throw addressAsPathError(target, method, path);
    const { debugPort, from } = flags;
    const port = debugPort === undefined ? target.defaultPort : allowedPort(debugPort, target.allowedPorts);
    const { origin } = programUrl(from ?? `${target.host}:${port}`, '/');
    const url = new URL(`${origin}/${path.replace(/^\//, '')}`);
    print(await responseBody(url, method, body, from === undefined ? localHint : remoteHint));
  });
}

/** `SCHEME://…` or `HOST:PORT`, at the beginning of a path. */
const addressPattern = /^([a-z][a-z\d+.-]*:\/\/|([\w.-]+|\[[\da-f:.]+\]):\d+(?=\/|$))/i;
const localHint = 'Check that the program runs on this host and listens on this port.';
const remoteHint = 'Check --from: a running control plane.';

interface RequestFlags {
  readonly debugPort?: string;
  readonly from?: string;
}

/** The error for `request GET http://HOST:PORT/PATH`. Its hint is the correct command. */
function addressAsPathError(
  { acceptsFrom, allowedPorts }: RequestTarget,
  method: string,
  path: string,
): ChartpilotError {
  const url = URL.parse(path.includes('://') ? path : `http://${path}`);
  const flag = acceptsFrom
    ? `--from ${url?.host || 'HOST:PORT'}`
    : `--debug-port ${allowedPorts.find((port) => port === Number(url?.port)) ?? 'PORT'}`;
  return optionError('<path>', mustBe('a path without scheme and host', path), {
    hint: `Use: request ${method} ${url ? url.pathname + url.search : '/PATH'} ${flag}`,
  });
}

function allowedPort(text: string, acceptedPorts: readonly number[]): number {
  const port = Number(text);
  if (acceptedPorts.includes(port)) return port;
  throw optionError('--debug-port', unknownValue(acceptedPorts.map(String), text));
}

async function responseBody(url: URL, method: string, body: string | undefined, hint: string): Promise<string> {
  if (body !== undefined && /^(get|head)$/i.test(method)) {
    const violation = disallowedValue(`must be omitted with method ${method.toUpperCase()}`);
    throw optionError('[body]', violation, { hint: 'Use POST or PUT, or omit the body.' });
  }
  const { status, text } = await requestProgram({ url, method, body, hint });
  if (status >= 400 && status !== 404) {
    throw new ChartpilotError('REQUEST_FAILED', `${method} ${url.href}: status ${status} ${text.trim()}`);
  }
  return text;
}

function writeStdout(text: string): void {
  standardOutput.print(text.endsWith('\n') || text === '' ? text : `${text}\n`);
}
