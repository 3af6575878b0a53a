/** States with the same future have the same key. */
import type { AnyActorRef } from 'xstate';
import type { PushQueue } from '../../../machines/discovery/push/push-queue-record.ts';
import type { SymbolicSystem } from '../../debugger/explore/symbolic-system.ts';
import { stateName } from '../../runtime/trace/statechart.ts';
import type { PushWorldState } from './discovery-state.ts';

/** These fields only record how a state was reached, or are only reported. */
const reportedFields = [
  'updates',
  'reasons',
  'startedAt',
  'sentAt',
  'versionSent',
  'versionAcked',
  'version',
  'lastError',
];
const constantFields = [
  'debounceAfterMs',
  'debounceMaxMs',
  'debounceEndpoints',
  'throttle',
  'onlyType',
  'ackTimeoutMs',
  'congestionMs',
  'maxNames',
  'maxNameChars',
];
const omittedFields = new Set([
  ...reportedFields,
  ...constantFields,
  'resendsEndpoints',
  'acceptsLateNames',
  'responses',
  'types',
]);
const keys = new WeakMap<object, string>();

export function keyOfWorld(state: PushWorldState, system: SymbolicSystem): string {
  const {
    changes,
    faults,
    contents,
    computedContents,
    pendingChanges,
    isListed,
    isSynced,
    registryActor,
    isLate,
    computeCall,
    contexts,
    build,
    orders,
    streams,
    clients,
    wires,
    unservedKeys,
  } = state;
  let key = `${changes} ${faults} ${JSON.stringify(contents)}|`;
  if (pendingChanges.length > 0 || !isSynced) key += JSON.stringify(computedContents);
  key += `${pendingChanges.join()} ${isListed} ${isSynced} ${registryActor !== undefined} ${isLate} ${computeCall !== undefined}|`;
  const oldest = Math.min(contexts.length, ...[...streams.values()].map(({ context }) => context));
  key += contexts
    .slice(Math.max(0, oldest - 1))
    .map(keyOf)
    .join();
  key += `|${build === undefined ? '' : keyOf(build.input) + keyOf(build.contents)}|${orders.map(keyOf).join()}|`;
  for (const stream of streams.values()) key += keyOf(stream);
  for (const client of clients) key += keyOf(client);
  for (const wire of wires.values()) key += keyOf(wire);
  for (const [connection, owedKeys] of unservedKeys) key += `${connection}:${owedKeys.join()};`;
  key += system.zone.orderKey();
  for (const actor of system.actors()) key += keyOfActor(actor);
  return renumberNonces(key);
}

/** Immutable data is serialized once. */
function keyOf(value: object): string {
  const cachedKey = keys.get(value);
  if (cachedKey !== undefined) return cachedKey;
  const key = JSON.stringify(value, (name, item: unknown) => {
    if (omittedFields.has(name)) return undefined;
    return item instanceof Set ? [...item] : item;
  });
  keys.set(value, key);
  return key;
}

function keyOfActor(actor: AnyActorRef): string {
  const snapshot = actor.getSnapshot() as { status: string; value?: never; context?: object };
  if (snapshot.value === undefined) return '';
  const cachedKey = keys.get(snapshot);
  if (cachedKey !== undefined) return cachedKey;
  const value = stateName(snapshot.value);
  const key = `${actor.id} ${snapshot.status} ${value} ${keyOf(futureOf(snapshot.context ?? {}, value))}\n`;
  keys.set(snapshot, key);
  return key;
}

/** The order of changes matters, not their numbers. Contents that are being built matter, built ones do not. */
function futureOf(context: object, value: string): object {
  if ('queue' in context) return relativeTo(context.queue as PushQueue);
  if (value.includes('building')) return context;
  if ('underWay' in context) return { ...context, underWay: undefined };
  return 'buildingRequests' in context ? { ...context, buildingRequests: undefined } : context;
}

function relativeTo({ first, ...queue }: PushQueue): object {
  return {
    ...queue,
    waiting: queue.waiting.map(({ connections, from }) => [connections, Math.max(0, from - first)]),
    serving: queue.serving.map(({ connection, next }) => [
      connection,
      next === null ? null : Math.max(0, next - first),
    ]),
  };
}

/** Only equality and order of nonces matter: the oldest referenced one becomes 0. */
function renumberNonces(key: string): string {
  const numbersByStream = new Map<string, number[]>();
  for (const [, stream, number] of key.matchAll(nonce)) {
    const numbers = numbersByStream.get(stream!) ?? [];
    numbers.push(Number(number));
    numbersByStream.set(stream!, numbers);
  }
  const ranks = new Map(
    [...numbersByStream].map(([stream, numbers]) => [stream, [...new Set(numbers)].sort((a, b) => a - b)] as const),
  );
  return key.replace(
    nonce,
    (_, stream: string, number: string) => `n${stream}.${ranks.get(stream)!.indexOf(Number(number))};`,
  );
}

const nonce = /n(\d+)\.(\d+);/g;
