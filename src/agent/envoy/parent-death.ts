/**
 * Ties a process's life to ours from its first moment. Envoy does so itself, but only once it has read its flags
 * (spec/envoy-hot-restart.md fact 8): an agent that is killed before that would leave it behind.
 */
import { execa } from 'execa';

/** Words to put before a command line: `setpriv` asks the kernel for the signal, then becomes the command. */
export async function parentDeathGuard(): Promise<readonly string[]> {
  const guard = ['setpriv', '--pdeathsig', 'KILL'];
  // Not everywhere, and not every setpriv knows it (BusyBox).
  const { failed } = await execa(guard[0]!, [...guard.slice(1), 'true'], { reject: false, stdio: 'ignore' });
  return failed ? [] : guard;
}
