import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { mustBe, outOfRange } from '../../model/fields/violation.ts';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { optionError } from '../../runtime/option-errors.ts';
import { standardError } from '../../runtime/output/standard-streams.ts';
import { addHelpSections } from './help-sections.ts';

interface WaitFlags {
  readonly timeoutSeconds: string;
  readonly requestTimeoutMillis: string;
  readonly periodMillis: string;
  readonly url: string;
}

/** The action throws ChartpilotError when the timeout passes. */
export function waitCommand(print: (line: string) => void = (line) => standardError.write(`${line}\n`)): Command {
  const command = new Command('wait')
    .summary('Wait until Envoy is ready')
    .description('Poll the readiness endpoint until it responds with status 200.')
    .option('--timeoutSeconds <n>', 'Maximum time to wait, in seconds', '60')
    .option('--requestTimeoutMillis <n>', 'Timeout of one request, in milliseconds', '500')
    .option('--periodMillis <n>', 'Interval between requests, in milliseconds', '500')
    .option('--url <url>', 'Readiness endpoint', 'http://localhost:15021/healthz/ready');
  return addHelpSections(command, {
    examples: ['pilot-agent wait --timeoutSeconds 30'],
    exitCodes: [
      ['0', 'Envoy is ready'],
      ['255', 'Envoy was not ready within the timeout'],
    ],
  }).action(async (flags: WaitFlags) => {
    const { timeoutSeconds, requestTimeoutMillis, periodMillis, url } = flags;
    const limitMs = parseInteger('--timeoutSeconds', timeoutSeconds, 0) * 1000;
    const requestLimitMs = parseInteger('--requestTimeoutMillis', requestTimeoutMillis, 1);
    const periodMs = parseInteger('--periodMillis', periodMillis, 1);
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      throw optionError('--url', mustBe('an http:// or https:// URL', url));
    }
    print(`Waiting for Envoy proxy to be ready (timeout: ${timeoutSeconds} seconds)...`);
    await waitUntilReady(url, { limitMs, requestLimitMs, periodMs });
    print('Envoy is ready!');
  });
}

interface Limits {
  readonly limitMs: number;
  readonly requestLimitMs: number;
  readonly periodMs: number;
}

/** A new Envoy is not ready, so the first request is sent after one period. */
async function waitUntilReady(url: string, { limitMs, requestLimitMs, periodMs }: Limits): Promise<void> {
  const deadline = performance.now() + limitMs;
  let lastProblem = 'no request was sent';
  while (performance.now() < deadline) {
    await sleep(Math.min(periodMs, Math.max(0, deadline - performance.now())));
    if (performance.now() >= deadline) break;
    const problem = await describeNotReadyReason(url, requestLimitMs);
    if (problem === undefined) return;
    lastProblem = problem;
  }
  throw new ChartpilotError(
    'REQUEST_FAILED',
    `GET ${url}: Envoy not ready within ${limitMs / 1000} s, last error: ${lastProblem}`,
    {
      hint: 'Check the log of pilot-agent and Envoy, or raise --timeoutSeconds.',
      fields: { path: url, expected: 'HTTP status code 200', got: lastProblem },
    },
  );
}

async function describeNotReadyReason(url: string, limitMs: number): Promise<string | undefined> {
  try {
    const { status, body } = await fetch(url, { signal: AbortSignal.timeout(limitMs) });
    await body?.cancel();
    return status === 200 ? undefined : `HTTP status code ${status}`;
  } catch (error) {
    return messageOf(error instanceof Error && error.cause !== undefined ? error.cause : error);
  }
}

function parseInteger(flag: string, text: string, minValue: number): number {
  const value = Number(text);
  if (/^\d{1,9}$/.test(text) && value >= minValue) return value;
  throw optionError(flag, outOfRange(`an integer >= ${minValue}`, text));
}
