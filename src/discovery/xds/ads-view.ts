import type { Actor } from 'xstate';
import type { adsConnectionMachine } from '../../../machines/discovery/xds/ads-connection.machine.ts';
import { clusterType } from '../../../machines/discovery/xds/ads-types.ts';
import { isSubscribed, type Watch } from '../../../machines/discovery/xds/ads-watch.ts';
import { stateName } from '../../runtime/trace/statechart.ts';
import type { ConnectionView, WatchView } from './ads-observer.ts';
import type { AdsStream } from './stream/ads-stream.ts';

/** `undefined` before the node is accepted. */
export function viewConnection(
  stream: AdsStream,
  actor: Actor<typeof adsConnectionMachine>,
): ConnectionView | undefined {
  if (stream.identity === undefined) return undefined;
  return {
    id: `${stream.identity.id}-${stream.number}`,
    node: stream.identity.id,
    identity: stream.identity,
    connectedAt: new Date(stream.connectedAt).toISOString(),
    peer: stream.peer,
    protocol: stream.kind.isDelta ? 'delta' : 'sotw',
    state: stateName(actor.getSnapshot().value),
    unflushedBytes: stream.responder.unflushedBytes,
    watches: Object.entries(stream.watches).flatMap(([typeUrl, watch]) =>
      isSubscribed(watch)
        ? [{ ...watchView(typeUrl, watch, stream.responder.resourcesSent(typeUrl)), ...rolloutView(typeUrl, stream) }]
        : [],
    ),
  };
}

function watchView(typeUrl: string, watch: Watch, resourcesSent: number): WatchView {
  const { wildcard, names, nonceSent, nonceAcked, nonceRejected, versionSent, versionAcked, lastError, sentAt } = watch;
  const awaits = watch.awaits === undefined ? {} : { awaits: watch.awaits };
  const sentTime = sentAt === 0 ? undefined : new Date(sentAt).toISOString();
  const nonces = { nonceSent, nonceAcked, nonceRejected, versionSent, versionAcked };
  return {
    typeUrl,
    wildcard,
    names,
    ...nonces,
    lastError,
    sentAt: sentTime,
    resourcesSent,
    pending: pendingOf(watch),
    ...awaits,
  };
}

function rolloutView(
  typeUrl: string,
  { responder: { gate } }: AdsStream,
): Pick<WatchView, 'waits' | 'givenUp' | 'evicted'> {
  if (gate === undefined) return {};
  const waits = gate.waitsOf(typeUrl);
  const waitFields = waits.length > 0 && { waits };
  if (typeUrl !== clusterType) return { ...waitFields };
  const { evictedCount } = gate;
  const abandonedNames = gate.rollout.givenUp.map(({ name }) => name);
  return {
    ...waitFields,
    ...(abandonedNames.length > 0 && { givenUp: abandonedNames }),
    ...(evictedCount > 0 && { evicted: evictedCount }),
  };
}

function pendingOf({ due, ordered }: Watch): NonNullable<WatchView['pending']> {
  if (due.all) return 'everything';
  if (due.changed || due.warming !== undefined || ordered === 'changes') return 'changes';
  return due.requested.length > 0 || ordered === 'names' ? 'names' : 'nothing';
}
