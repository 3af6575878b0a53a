import { endpointType } from '../../../machines/discovery/xds/ads-types.ts';
import type { WorldChoice } from '../../debugger/explore/world.ts';
import type { ClientState } from './discovery-client.ts';
import type { PushMoment } from './discovery-moment.ts';

export function* possibleChoices(moment: PushMoment): Generator<WorldChoice> {
  const { options } = moment;
  const { build, orders, changes, faults, computeCall, isListed, isSynced, registryActor } = moment.state;
  if (build !== undefined) yield { name: 'built', free: true };
  if (computeCall !== undefined) yield { name: 'computed', free: true };
  // The first list may never arrive; a lost registry always sends its list again.
  if (!isSynced && registryActor !== undefined) yield { name: 'listed', free: true, ...(!isListed && { fair: false }) };
  if (orders.length > 0) yield { name: 'turn', free: true };
  for (const [index, client] of moment.state.clients.entries()) yield* choicesOf(moment, index, client);
  for (const timer of moment.system.zone.firableTimers()) yield { name: `tick:${timer}`, free: true };
  if (changes > 0) for (const event of options.events) yield { name: `change:${event}`, free: false };
  if (changes > 0) for (const event of options.registryChanges ?? []) yield { name: `move:${event}`, free: false };
  if (faults === 0 || options.buildsFail === false) return;
  // Before the first context, a failed build or computation would end the program with an error.
  if (moment.state.contexts.length === 0) return;
  if (build !== undefined) yield { name: 'unbuilt', free: false };
  if (computeCall !== undefined) yield { name: 'uncomputed', free: false };
  if (options.registryFails === true && isSynced) yield { name: 'lost', free: false };
}

function* choicesOf(
  moment: PushMoment,
  index: number,
  { connection, unacknowledgedResponses, nonces, isStalled }: ClientState,
): Generator<WorldChoice> {
  const isFaulty = moment.state.faults > 0;
  if (connection === undefined) {
    if (moment.state.contexts.length > 0) yield { name: `connect:${index}`, free: true };
    return;
  }
  if (hasNotRequested(moment, index)) {
    yield { name: `ask:${index}`, free: true };
    return;
  }
  if (unacknowledgedResponses.length > 0) yield { name: `accept:${index}`, free: true };
  if (isStalled) yield { name: `resume:${index}`, free: true, fair: false };
  else if (moment.state.streams.get(connection)!.network.length > 0) yield { name: `read:${index}`, free: true };
  if (!isFaulty) return;
  if (!isStalled) yield { name: `stall:${index}`, free: false };
  if (mayReject(moment, index)) yield { name: `reject:${index}`, free: false };
  if (Object.keys(nonces).length > 0) yield { name: `stale:${index}`, free: false };
  yield { name: `reset:${index}`, free: false };
}

/**
 * The names in a rejection do not count. A state-of-the-world client whose names change while a response is on its way sends the
 * new names only with its ACK of that response. If it rejects the response, the server does not receive them until the next one.
 */
function mayReject(moment: PushMoment, index: number): boolean {
  const { isDelta, unacknowledgedResponses, connection, requestedEndpoints } = moment.state.clients[index]!;
  const [response] = unacknowledgedResponses;
  if (response === undefined || isDelta || response.typeUrl !== endpointType) return response !== undefined;
  return moment.state.wires.get(connection!)![endpointType]!.subscribedNames === requestedEndpoints.toSorted().join();
}

function hasNotRequested(moment: PushMoment, index: number): boolean {
  const { connection } = moment.state.clients[index]!;
  return moment.options.requestsLate === true && Object.keys(moment.state.wires.get(connection!) ?? {}).length === 0;
}
