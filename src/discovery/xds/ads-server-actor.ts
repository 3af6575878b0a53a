import type { ServerCredentials } from '@grpc/grpc-js';
import { type AnyActorRef, fromCallback } from 'xstate';
import { peer } from '../../../machines/discovery/peers.ts';
import type { AdsOrder, ProxiesServe, ProxyReport, XdsPort } from '../../../machines/discovery/protocol.ts';
import { relay } from '../../runtime/actors/relay-event.ts';
import { explainInOneLine } from '../../runtime/errors.ts';
import { faultLog } from '../../runtime/fences/uncaught.ts';
import { formatAddress, type ListenAddress } from '../listen-address.ts';
import { type AdsServer, type AdsServerOptions, createAdsServer } from './ads-server.ts';
import { ProxyTurns } from './turns/proxy-turns.ts';

export interface AdsEffectOptions extends Omit<AdsServerOptions, 'sender' | 'onJoined' | 'onLeft'> {
  readonly address: ListenAddress;
  /** `credentials` is called when the port is opened. */
  readonly securePort?: { readonly address: ListenAddress; readonly credentials: () => ServerCredentials };
  readonly shutdownMs: number;
  readonly onCreated: (server: AdsServer) => void;
  readonly onListening: (port: number) => void;
}

export function adsEffect({ address, securePort, shutdownMs, onCreated, onListening, ...options }: AdsEffectOptions) {
  return fromCallback<AdsOrder, undefined>(({ receive, sendBack, self, system }) => {
    const reportToQueue = (report: ProxyReport): void =>
      relay(self as AnyActorRef, peer('push-queue')({ system }), report);
    const server = createAdsServer({
      ...options,
      sender: self as AnyActorRef,
      waitingProxies: () => proxyTurnQueue.size,
      onJoined: (connection) => reportToQueue({ type: 'proxy.connected', connection }),
      // Deferred, so that the end of the connection comes first in the trace.
      onLeft: (connection) => queueMicrotask(() => reportToQueue({ type: 'proxy.disconnected', connection })),
    });
    onCreated(server);
    const proxyTurnQueue: ProxyTurns = proxyTurns(server, options, (connections) =>
      reportToQueue({ type: 'proxies.served', connections }),
    );
    const listen = async (xdsPort: XdsPort): Promise<void> => {
      try {
        const { host, port } = xdsPort === 'secure' ? securePort!.address : address;
        const credentials = xdsPort === 'secure' ? securePort!.credentials() : undefined;
        const openedPort = await server.listen(formatAddress({ host: host || '::', port }), credentials);
        if (xdsPort === 'plaintext') onListening(openedPort.port);
        sendBack({ type: 'ads.listening', port: xdsPort, addresses: [formatAddress({ host, port: openedPort.port })] });
      } catch (error) {
        sendBack({ type: 'ads.failed', reason: explainInOneLine(error) });
      }
    };
    receive((order) => {
      switch (order.type) {
        case 'ads.listen':
          void listen(order.port);
          break;
        case 'proxies.serve':
          proxyTurnQueue.addOrder(order);
          break;
        case 'ads.drain':
          void server.drain(shutdownMs).then(() => sendBack({ type: 'ads.drained' }));
          break;
      }
    });
    return () => {
      proxyTurnQueue.stop();
      server.close();
    };
  });
}

function proxyTurns(
  server: AdsServer,
  { observer, logger }: Pick<AdsServerOptions, 'observer' | 'logger'>,
  reportServed: (connections: number[]) => void,
): ProxyTurns {
  const elapsedMs = ({ startedAt }: ProxiesServe): number => Math.max(0, Date.now() - startedAt);
  const report = faultLog(logger, 'push.failed');
  return new ProxyTurns({
    serve(connection, change, order) {
      observer?.queueTime?.(elapsedMs(order));
      if (server.serve([connection], change) > 0) observer?.proxyConverged?.(elapsedMs(order));
    },
    onFailed: (connection, error) => report(error, { connection: `ads-connection-${connection}` }),
    onServed: ({ connections }) => reportServed(connections),
  });
}
