/**
 * Ties a process's life to ours from its first moment. Envoy does so itself, but only once it has read its flags
 * (spec/envoy-hot-restart.md fact 8): an agent that is killed before that would leave it behind.
 */
import { runForOutput } from '../../runtime/asked-program.ts';

/** What is put before a command line where the kernel's signal can be asked for, which is nearly everywhere. */
export const usualGuard: readonly string[] = ['setpriv', '--pdeathsig', 'KILL'];

/** `true` ends at once; a program in its place that does not end is no guard. */
const maxGuardMs = 5_000;

/** Words to put before a command line: `setpriv` asks the kernel for the signal, then becomes the command. */
export async function parentDeathGuard(): Promise<readonly string[]> {
  // Not everywhere, and not every setpriv knows it (BusyBox).
  const { failed } = await runForOutput(usualGuard[0]!, [...usualGuard.slice(1), 'true'], {
    stdio: 'ignore',
    timeout: maxGuardMs,
  });
  return failed ? [] : usualGuard;
}
