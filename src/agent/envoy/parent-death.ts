/**
 * Envoy itself requests that the kernel ends it with its parent, but only after parsing its flags (docs/hot-restart-reference.md, fact 8), so it would
 * survive an agent that is killed earlier.
 */
import { runForOutput } from '../../runtime/run-for-output.ts';

export const setprivGuard: readonly string[] = ['setpriv', '--pdeathsig', 'KILL'];

/** A `setpriv` that takes longer to run `true` is unusable. */
const maxGuardMs = 5_000;

/** Returns an empty prefix if it does not work. `setpriv` requests the kernel's signal, then executes the command. */
export async function parentDeathGuard(): Promise<readonly string[]> {
  // setpriv may be missing, or not support the option (BusyBox).
  const { failed } = await runForOutput(setprivGuard[0]!, [...setprivGuard.slice(1), 'true'], {
    stdio: 'ignore',
    timeout: maxGuardMs,
  });
  return failed ? [] : setprivGuard;
}
