import { fromCallback } from 'xstate';
import { adsConnectionMachine } from '../../../machines/discovery/xds/ads-connection.machine.ts';
import type { ConnectionPush, StreamOrder } from '../../../machines/discovery/xds/ads-protocol.ts';
import type { AdsStream } from './stream/ads-stream.ts';

export interface ConnectionEffects {
  readonly streamOf: (connection: number) => AdsStream;
  readonly onJoined: (stream: AdsStream, node: string) => void;
  readonly onPushed: (connection: number, order: ConnectionPush) => void;
  readonly onResponded: (connection: number) => void;
  readonly onAcknowledged: (connection: number) => void;
}

/** Each call of `provide` creates a machine, so all connections share one. */
export function adsConnectionWithEffects({
  streamOf,
  onJoined,
  onPushed,
  onResponded,
  onAcknowledged,
}: ConnectionEffects) {
  return adsConnectionMachine.provide({
    actors: {
      stream: fromCallback<StreamOrder, { connection: number }>(({ input: { connection }, receive, sendBack }) => {
        const stream = streamOf(connection);
        receive((order) => stream.execute(order));
        stream.start({
          report: (report) => {
            sendBack(report);
            if (report.type === 'node.accepted') onJoined(stream, report.node);
          },
          onPushed: (order) => onPushed(connection, order),
          onResponded: () => onResponded(connection),
          onAcknowledged: () => onAcknowledged(connection),
        });
        return () => stream.dispose();
      }),
    },
  });
}
