import { fromCallback } from 'xstate';
import type { TrustBundleReceived } from '../../../machines/agent/secrets-protocol.ts';
import type { DownstreamOpened, SocketFailed, SocketListening } from '../../../machines/agent/xds-protocol.ts';
import { explainInOneLine } from '../../runtime/errors.ts';
import type { Ownership } from '../../runtime/ownership.ts';
import { type GrpcMethod, GrpcSocketServer } from '../grpc/grpc-server.ts';
import { type DiscoveryProtocol, methods } from './discovery-wire.ts';
import { storedBundle } from './stored-bundle.ts';
import type { XdsStreams } from './xds-streams.ts';

/** Identifies the Envoy of a stream, because parent and child of a hot restart have the same node ID. */
export const envoyHeader = 'x-chartpilot-envoy';
const maxNameCharacters = 64;

export interface XdsServerEnvironment {
  readonly streams: XdsStreams;
  readonly ownership?: Ownership;
  /** A previous agent received these roots. */
  readonly storedBundle?: () => Uint8Array | undefined;
  readonly random?: () => number;
}

type Report = SocketListening | SocketFailed | DownstreamOpened | TrustBundleReceived;

export function xdsServer({
  streams,
  ownership,
  storedBundle: bundleStore,
  random = Math.random,
}: XdsServerEnvironment) {
  return fromCallback<{ type: never }, { socket: string }>(({ input, sendBack }) => {
    let server: GrpcSocketServer | undefined;
    let isStopped = false;
    const report = (event: Report): void => {
      if (!isStopped) sendBack(event);
    };
    const acceptCalls =
      (protocol: DiscoveryProtocol): GrpcMethod =>
      (call) => {
        const envoy = String(call.headers[envoyHeader] ?? '').slice(0, maxNameCharacters);
        report({ type: 'downstream.opened', stream: streams.add(call, envoy), envoy, protocol, chance: random() });
      };
    const streamMethods = new Map(
      (Object.entries(methods) as [DiscoveryProtocol, string][]).map(([protocol, method]) => [
        method,
        acceptCalls(protocol),
      ]),
    );
    GrpcSocketServer.listen(input.socket, { methods: streamMethods, ...(ownership && { ownership }) }).then(
      (startedServer) => {
        server = startedServer;
        if (isStopped) startedServer.close();
        else {
          const bundle = storedBundle(bundleStore?.());
          if (bundle !== undefined) report({ type: 'trust-bundle.received', ...bundle });
          report({ type: 'socket.listening', socket: input.socket });
        }
      },
      (error: unknown) => report({ type: 'socket.failed', reason: explainInOneLine(error) }),
    );
    return () => {
      isStopped = true;
      server?.close();
    };
  });
}
