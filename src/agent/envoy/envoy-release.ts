/** Which version an Envoy binary is, and whether that one is supported (docs/envoy-versions.md). */
import { envoyVersionIn, unsupportedEnvoyText } from '../../model/node/envoy-build.ts';
import { runForOutput } from '../../runtime/asked-program.ts';
import type { Logger } from '../../runtime/output/log.ts';

/** Characters of an output that are read: Envoy writes a line, another program may write anything. */
export const maxVersionOutput = 10_000;
/** Envoy takes a tenth of a second, on a busy host a second. */
const answerLimitMs = 30_000;

/** @param output of `envoy --version`; @returns `1.40.0` */
export function releaseIn(output: string): string | undefined {
  return /version: [^/\s]+\/([^/\s]+)\//.exec(output)?.[1];
}

/** Logs a warning if the binary is outside of the supported range. Never rejects: a binary that does not run is found out when it is started. */
export async function warnOfVersion(path: string, log: Pick<Logger, 'warn'>): Promise<void> {
  const options = { all: true, stdin: 'ignore', maxBuffer: maxVersionOutput, timeout: answerLimitMs } as const;
  const { all = '' } = await runForOutput(path, ['--version'], options).catch(() => ({ all: '' }));
  const problem = unsupportedEnvoyText(envoyVersionIn(releaseIn(all) ?? ''));
  if (problem !== undefined) log.warn('envoy.versionUnsupported', { path, reason: problem });
}
