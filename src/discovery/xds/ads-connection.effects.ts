/** Effects of the chart `ads-connection`: one xDS stream. */
import { fromCallback } from 'xstate';
import { adsConnectionMachine } from '../../../machines/discovery/xds/ads-connection.machine.ts';
import type { PushToClient, StreamOrder } from '../../../machines/discovery/xds/ads-protocol.ts';
import type { AdsStream } from './stream/ads-stream.ts';

export interface ConnectionEffects {
  /** The stream that was opened for a connection. */
  readonly streamOf: (connection: number) => AdsStream;
  /** The client was accepted as this node. */
  readonly joined: (stream: AdsStream, node: string) => void;
  readonly pushed: (connection: number, order: PushToClient) => void;
  /** A response was written, or the client has all that it requested. */
  readonly responded: (connection: number) => void;
  /** The client has acknowledged a response. */
  readonly acknowledged: (connection: number) => void;
}

/** One machine for all connections: each call of `provide` creates another one. */
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
