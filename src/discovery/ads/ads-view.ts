/** Connections as debug pages and status show them. */
import type { Actor } from 'xstate';
import type { adsConnectionMachine } from '../../../machines/discovery/ads-connection.machine.ts';
import { isSubscribed, type Watch } from '../../../machines/discovery/ads-watch.ts';
import { stateName } from '../../runtime/actor-system.ts';
import type { ConnectionView, WatchView } from './ads-observer.ts';
import type { AdsStream } from './ads-stream.ts';

/** What is known of a connection; undefined until its client has told who it is. */
export function viewConnection(
  stream: AdsStream,
  actor: Actor<typeof adsConnectionMachine>,
): ConnectionView | undefined {
  if (stream.identity === undefined) return undefined;
  const { value, context } = actor.getSnapshot();
  return {
    id: `${stream.identity.id}-${stream.number}`,
    node: stream.identity.id,
    identity: stream.identity,
    connectedAt: new Date(stream.connectedAt).toISOString(),
    peer: stream.peer,
    protocol: stream.kind.delta ? 'delta' : 'sotw',
    state: stateName(value),
    watches: Object.entries(context.watches).flatMap(([typeUrl, watch]) =>
      isSubscribed(watch) ? [watchView(typeUrl, watch)] : [],
    ),
  };
}

function watchView(typeUrl: string, watch: Watch): WatchView {
  const { wildcard, names, nonceSent, nonceAcked, versionSent, versionAcked, lastError, sentAt } = watch;
  const sent = sentAt === 0 ? undefined : new Date(sentAt).toISOString();
  return { typeUrl, wildcard, names, nonceSent, nonceAcked, versionSent, versionAcked, lastError, sentAt: sent };
}
