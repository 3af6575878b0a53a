import { type Invariant, listOf } from './invariant.ts';

/** The reported readiness must be correct, because traffic depends on it. */
export const readyIsTrue: Invariant = {
  name: 'never ready while no Envoy accepts connections',
  onReadiness({ ready }, { host }) {
    if (!ready || host.processes.some((process) => host.isAccepting(process))) return undefined;
    return `ready; running: ${listOf(host.processes)}`;
  },
};

/** Between two probes only Envoy knows that a child has taken over. */
export const readyHasItsListeners: Invariant = {
  name: 'never ready while an Envoy serves without a listener that it rejected',
  onReadiness({ ready }, { host }) {
    const incompleteProcesses = host.processes.filter(
      (process) => process.isSeenLive && process.lacksListener && host.isAccepting(process),
    );
    return ready && incompleteProcesses.length > 0
      ? `ready; without a listener: ${listOf(incompleteProcesses)}`
      : undefined;
  },
};

/** If an agent stayed unready, traffic would not return when a valid certificate replaces an invalid one. */
export const readyIsReported: Invariant = {
  name: 'ready while an Envoy serves its whole configuration',
  onReadiness({ ready, reason }, { host, stopOrdered, agentEnds }) {
    if (ready || stopOrdered || agentEnds) return undefined;
    const readyProcesses = host.processes.filter((process) => host.isReadyFor(process));
    return readyProcesses.length === 0 ? undefined : `not ready (${reason}); serving: ${listOf(readyProcesses)}`;
  },
};

/** Logs and metrics depend on these reports. */
export const eachStartIsReportedOnce: Invariant = {
  name: 'each start is reported as decided, then as ended',
  onReport(type, name, { restart }) {
    if (type === 'restart.decided')
      return restart === undefined ? undefined : `${name} is decided before ${restart} has ended`;
    return restart === name ? undefined : `${name} has ended; in progress: ${restart ?? 'none'}`;
  },
  afterChoice({ restart, agentExitCode }) {
    if (agentExitCode === undefined || restart === undefined) return undefined;
    return `the agent exited, and the end of ${restart} was not reported`;
  },
};

/** Only an operator can free space. */
export const fullDiskIsReported: Invariant = {
  name: 'a start without space for its files is reported with the reason',
  afterChoice({ unreportedReason }) {
    return unreportedReason === undefined ? undefined : `not reported: ${unreportedReason}`;
  },
};
