/**
 * Ends a process when the agent exits, from the start of the process. Envoy requests this signal itself, but only after parsing its flags
 * (docs/hot-restart-reference.md, fact 8), so it would survive an agent that is killed earlier.
 */
import { runForOutput } from '../../runtime/run-for-output.ts';

/** Command prefix on hosts with util-linux `setpriv`. */
export const setprivGuard: readonly string[] = ['setpriv', '--pdeathsig', 'KILL'];

/** `true` exits immediately; a `setpriv` that does not is unusable. */
const maxGuardMs = 5_000;

/** The command prefix, or an empty one if it does not work: `setpriv` requests the kernel's signal, then executes the command. */
export async function parentDeathGuard(): Promise<readonly string[]> {
  // setpriv may be missing, or not support the option (BusyBox).
  const { failed } = await runForOutput(setprivGuard[0]!, [...setprivGuard.slice(1), 'true'], {
    stdio: 'ignore',
    timeout: maxGuardMs,
  });
  return failed ? [] : setprivGuard;
}
