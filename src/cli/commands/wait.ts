/** `wait`: until Envoy is ready, or a limit is over (spec/agent.md §11). */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import { standardError } from '../../runtime/output/standard-streams.ts';

interface WaitFlags {
  readonly timeoutSeconds: string;
  readonly requestTimeoutMillis: string;
  readonly periodMillis: string;
  readonly url: string;
}

/** The command. Throws ChartpilotError from its action when the limit is over. */
export function waitCommand(tell: (line: string) => void = (line) => standardError.write(`${line}\n`)): Command {
  return new Command('wait')
    .summary('wait until Envoy is ready')
    .description('Asks for readiness until the answer is 200.\n\nExit code: 0 ready, 255 not within the limit.')
    .option('--timeoutSeconds <n>', 'the limit', '60')
    .option('--requestTimeoutMillis <n>', 'for each question', '500')
    .option('--periodMillis <n>', 'between two questions', '500')
    .option('--url <url>', 'whom to ask', 'http://localhost:15021/healthz/ready')
    .addHelpText('after', '\nExample:\n  pilot-agent wait --timeoutSeconds 30')
    .action(async (flags: WaitFlags) => {
      const { timeoutSeconds, requestTimeoutMillis, periodMillis, url } = flags;
      const limitMs = wholeNumber('--timeoutSeconds', timeoutSeconds, 0) * 1000;
      const requestLimitMs = wholeNumber('--requestTimeoutMillis', requestTimeoutMillis, 1);
      const periodMs = wholeNumber('--periodMillis', periodMillis, 1);
      if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
        throw new ChartpilotError(
          'FLAG_INVALID',
          `--url must be an address such as http://…, not ${JSON.stringify(url)}`,
        );
      }
      tell(`Waiting for Envoy proxy to be ready (timeout: ${timeoutSeconds} seconds)...`);
      await untilReady(url, { limitMs, requestLimitMs, periodMs });
      tell('Envoy is ready!');
    });
}

interface Limits {
  readonly limitMs: number;
  readonly requestLimitMs: number;
  readonly periodMs: number;
}

/** The first question comes after one period: who has just been started is not ready. */
async function untilReady(url: string, { limitMs, requestLimitMs, periodMs }: Limits): Promise<void> {
  const deadline = performance.now() + limitMs;
  let last = 'nobody was asked';
  while (performance.now() < deadline) {
    await sleep(Math.min(periodMs, Math.max(0, deadline - performance.now())));
    if (performance.now() >= deadline) break;
    const problem = await whyNotReady(url, requestLimitMs);
    if (problem === undefined) return;
    last = problem;
  }
  throw new ChartpilotError('REQUEST_FAILED', `timeout waiting for Envoy proxy to become ready. Last error: ${last}`, {
    hint: `${url} has not answered 200 in ${limitMs / 1000} s.`,
  });
}

/** Undefined: ready. The body says nothing more, and is read no further. */
async function whyNotReady(url: string, limitMs: number): Promise<string | undefined> {
  try {
    const { status, body } = await fetch(url, { signal: AbortSignal.timeout(limitMs) });
    await body?.cancel();
    return status === 200 ? undefined : `HTTP status code ${status}`;
  } catch (error) {
    return messageOf(error instanceof Error && error.cause !== undefined ? error.cause : error);
  }
}

function wholeNumber(flag: string, text: string, least: number): number {
  const value = Number(text);
  if (/^\d{1,9}$/.test(text) && value >= least) return value;
  throw new ChartpilotError(
    'FLAG_INVALID',
    `${flag} must be a whole number from ${least} on, not ${JSON.stringify(text)}`,
  );
}
