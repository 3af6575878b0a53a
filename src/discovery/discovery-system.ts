import type { DiscoveryOutput } from '../../machines/discovery/discovery.machine.ts';
import type { DiscoverySettings } from '../../machines/discovery/settings.ts';
import { startRoot, waitForActor } from '../runtime/actors/actor-system.ts';
import { logRecords } from '../runtime/actors/log-records.ts';
import { faultOwner } from '../runtime/fences/fault-owner.ts';
import { catchUncaught, faultLog } from '../runtime/fences/uncaught.ts';
import type { Logger } from '../runtime/output/log.ts';
import { type ControlPlaneParts, makeControlPlane } from './control-plane.ts';
import type { DiscoveryProgram } from './discovery-program.ts';
import { discoveryStates } from './monitor/discovery-states.ts';
import { discoveryLogEntry, logEvents } from './monitor/event-log.ts';
import type { DiscoveryOptions } from './options/discovery-options.ts';

/** @returns exit code and message for the user */
export async function runDiscovery(program: DiscoveryProgram): Promise<DiscoveryOutput> {
  const { options, log, recorder } = program;
  for (const entry of [...options.warnings, ...options.notes]) log.write(entry);
  const stops = [
    logEvents(recorder, log),
    logRecords(recorder, log.scope('discovery'), {
      states: discoveryStates,
      entry: discoveryLogEntry,
    }),
  ];
  const plane = makeControlPlane(program);
  stops.push(plane.metrics.observe(recorder), plane.progress.observe(recorder));
  try {
    const actor = startRoot(plane.machine(), {
      id: 'discovery',
      input: { settings: settingsOf(options, plane) },
      recorder,
      onError: () => {},
    });
    const uncaughtError = handleUncaughtErrors(log, plane, () => actor.getSnapshot().hasTag('serving'));
    stops.push(uncaughtError.stop);
    // A failed start has no streams to close.
    const output = await Promise.race([waitForActor(actor), uncaughtError.startFailure]).finally(() => actor.stop());
    if (output === undefined) throw new Error('the control plane exited without a result');
    return output;
  } finally {
    for (const stop of stops) stop();
    plane.cluster?.close();
    plane.consul?.close();
  }
}

/** Each uncaught error ends the stream or request that caused it. Before the control plane serves clients, it ends the program. */
function handleUncaughtErrors(
  log: Logger,
  { metrics }: ControlPlaneParts,
  isServing: () => boolean,
): { readonly startFailure: Promise<never>; readonly stop: () => void } {
  const { promise, reject } = Promise.withResolvers<never>();
  const report = faultLog(log, 'fault.uncaught');
  const stop = catchUncaught((error, origin) => {
    const owner = faultOwner();
    metrics.errorEscaped(origin, owner === undefined ? 'nothing' : 'owner');
    report(error, { origin, ...(owner !== undefined && { owner: owner.name }) });
    owner?.fail(error);
    if (owner === undefined && !isServing()) reject(error);
  });
  return { startFailure: promise, stop };
}

function settingsOf(
  options: DiscoveryOptions,
  { cluster, controllers, servesWebhooks }: ControlPlaneParts,
): DiscoverySettings {
  return {
    cluster: cluster?.input ?? null,
    elections: controllers?.writes.elections.input ?? null,
    mesh: { file: options.meshConfigFile, settleMs: 100 },
    networks: { file: options.networksConfigFile, settleMs: 100 },
    configs: { quietMs: 5, coalesceMs: 20 },
    registries: { firstListsMs: options.firstListsMs },
    servesNames: options.namesAddress !== undefined,
    servesWebhooks,
    readsConsul: options.consul !== undefined,
    registrations: { graceMs: options.registration.graceMs },
    jwks: { refreshMs: options.keyRefreshMs, firstKeysTimeoutMs: 5_000 },
    push: options.push,
    pushQueue: { throttle: options.pushThrottle },
    secure: options.securePort !== undefined,
    hasAuthority: options.authority !== undefined,
    sharesAuthority: cluster?.authoritySecrets !== undefined,
    authority: { checkMs: options.authority?.checkMs ?? 3_600_000, settleMs: 100 },
    serverCertificate: { checkMs: 3_600_000, settleMs: 100 },
    shutdownMs: options.shutdownMs,
  };
}
