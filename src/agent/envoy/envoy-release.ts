import { envoyVersionIn, unsupportedEnvoyText } from '../../model/node/envoy-build.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { runForOutput } from '../../runtime/run-for-output.ts';

/** Maximum characters read: Envoy prints one line, another program may print anything. */
export const maxVersionOutput = 10_000;
/** Timeout of `envoy --version`, which takes 0.1 s, and up to 1 s on a busy host. */
const maxVersionMs = 30_000;

export function parseRelease(output: string): string | undefined {
  return /version: [^/\s]+\/([^/\s]+)\//.exec(output)?.[1];
}

/** Never rejects: a binary that does not run is reported when an epoch starts. */
export async function warnAboutVersion(path: string, log: Pick<Logger, 'warn'>): Promise<void> {
  const options = { all: true, stdin: 'ignore', maxBuffer: maxVersionOutput, timeout: maxVersionMs } as const;
  const { all = '' } = await runForOutput(path, ['--version'], options).catch(() => ({ all: '' }));
  const problem = unsupportedEnvoyText(envoyVersionIn(parseRelease(all) ?? ''));
  if (problem !== undefined) log.warn('envoy.versionUnsupported', { path, reason: problem });
}
