/** Effects of the chart `ads-connection`: one xDS stream. */
import { fromCallback } from 'xstate';
import { adsConnectionMachine } from '../../../machines/discovery/xds/ads-connection.machine.ts';
import type { ConnectionPush, StreamOrder } from '../../../machines/discovery/xds/ads-protocol.ts';
import type { AdsStream } from './stream/ads-stream.ts';

export interface ConnectionEffects {
  readonly streamOf: (connection: number) => AdsStream;
  readonly joined: (stream: AdsStream, node: string) => void;
  readonly pushed: (connection: number, order: ConnectionPush) => void;
  readonly responded: (connection: number) => void;
  readonly acknowledged: (connection: number) => void;
}

/** Each call of `provide` creates a machine, so all connections share one. */
export function adsConnectionWithEffects({ streamOf, joined, pushed, responded, acknowledged }: ConnectionEffects) {
  return adsConnectionMachine.provide({
    actors: {
      stream: fromCallback<StreamOrder, { connection: number }>(({ input: { connection }, receive, sendBack }) => {
        const stream = streamOf(connection);
        receive((order) => stream.execute(order));
        stream.open({
          report: (report) => {
            sendBack(report);
            if (report.type === 'node.accepted') joined(stream, report.node);
          },
          pushed: (order) => pushed(connection, order),
          responded: () => responded(connection),
          acknowledged: () => acknowledged(connection),
        });
        return () => stream.dispose();
      }),
    },
  });
}
