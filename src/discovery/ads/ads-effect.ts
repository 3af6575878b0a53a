/** The effect of `discovery/ads-server`: the gRPC server and its streams. */
import { type AnyActorRef, fromCallback } from 'xstate';
import type { AdsOrder } from '../../../machines/discovery/protocol.ts';
import { explainInOneLine } from '../../runtime/errors.ts';
import { formatAddress, type ListenAddress } from '../listen-address.ts';
import { type AdsServer, type AdsServerOptions, createAdsServer } from './ads-server.ts';

export interface AdsEffectOptions extends Omit<AdsServerOptions, 'sender'> {
  readonly address: ListenAddress;
  readonly shutdownMs: number;
  /** Called with each server that is made: one for each life of the actor. */
  readonly made: (server: AdsServer) => void;
  /** The port that was opened. */
  readonly listening: (port: number) => void;
}

export function adsEffect({ address, shutdownMs, made, listening, ...options }: AdsEffectOptions) {
  return fromCallback<AdsOrder, undefined>(({ receive, sendBack, self }) => {
    const server = createAdsServer({ ...options, sender: self as AnyActorRef });
    made(server);
    const listen = async (): Promise<void> => {
      try {
        const { port } = await server.listen(formatAddress({ host: address.host || '::', port: address.port }));
        listening(port);
        sendBack({ type: 'ads.listening', addresses: [formatAddress({ ...address, port })] });
      } catch (error) {
        sendBack({ type: 'ads.failed', reason: explainInOneLine(error) });
      }
    };
    receive((order) => {
      switch (order.type) {
        case 'ads.listen':
          void listen();
          break;
        case 'clients.push':
          server.push({ version: order.version, forced: order.forced, configs: new Set(order.configs) });
          break;
        case 'ads.drain':
          void server.drain(shutdownMs).then(() => sendBack({ type: 'ads.drained' }));
          break;
      }
    });
    return () => server.close();
  });
}
