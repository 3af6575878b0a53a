import { type OwnRedirection, ownRedirection, type Sender } from '../iptables/own-redirection.ts';
import { hasNetAdmin } from '../iptables/run-command.ts';
import { ChartpilotError } from '../runtime/errors.ts';
import type { Logger } from '../runtime/output/log.ts';

/** Default uid and gid of the proxy in `istio-iptables`. */
const defaultProxyId = 1337;

const advice =
  'run the agent as the user and group that istio-iptables excludes (1337 by default; User= and Group= of its systemd ' +
  'unit), or pass its user to istio-iptables as --proxy-uid';

export interface AgentTraffic {
  readonly role: string;
  /** False if the agent's options disable redirection (interception mode NONE). */
  readonly intercepts: boolean;
}

/**
 * Logs a warning if the agent runs as root, or if its redirection cannot be read.
 *
 * @throws ChartpilotError REDIRECTION_LOOP if rules of this network namespace would redirect Envoy's connections to
 * Envoy
 */
export async function refuseRedirectionLoop(log: Logger, { role, intercepts }: AgentTraffic): Promise<void> {
  const sender: Sender = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
  const redirection = await readableRedirection(sender);
  if (redirection.kind === 'loop') throw loopError(sender, redirection.excluded);
  if (!intercepts) return;
  const reason = redirection.kind === 'unknown' ? { reason: redirection.reason } : {};
  const isExcludedByDefault = sender.uid === defaultProxyId || sender.gid === defaultProxyId;
  if (sender.uid === 0) {
    log.warn('agent.runsAsRoot', { ...sender, ...reason });
  } else if (redirection.kind === 'unknown' && role === 'sidecar' && !isExcludedByDefault) {
    log.warn('agent.redirectionUnknown', { ...sender, ...reason });
  }
}

async function readableRedirection(sender: Sender): Promise<OwnRedirection> {
  if (!hasNetAdmin()) return { kind: 'unknown', reason: 'rules can be read with the capability NET_ADMIN only' };
  return ownRedirection(sender);
}

function loopError({ uid, gid }: Sender, excludedIds: readonly string[]): ChartpilotError {
  const owners = excludedIds.length === 0 ? 'no owner is excluded' : `excluded are ${excludedIds.join(', ')}`;
  return new ChartpilotError(
    'REDIRECTION_LOOP',
    `rules of this network namespace redirect connections of uid ${uid}, gid ${gid}; ${owners}`,
    { hint: `${advice[0]!.toUpperCase()}${advice.slice(1)}. See docs/virtual-machines.md.` },
  );
}
