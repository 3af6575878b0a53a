import { readFileSync } from 'node:fs';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { Program } from './program.ts';

/**
 * Runs `chartpilot check` on traces.
 * @returns its exit code (null if a signal ended it) and its output
 */
export async function checkTraces(files: readonly string[]): Promise<{ code: number | null; output: string }> {
  const checker = Program.start('chartpilot', { args: ['check', ...files], env: process.env, cwd: packageRoot() });
  const { code } = await checker.exited;
  return { code, output: checker.output() };
}

/** How often an event was sent between actors, according to a trace. */
export const countSentEvents = (trace: string, event: string): number =>
  readFileSync(trace, 'utf8').split(`"event":{"type":"${event}"`).length - 1;
