/** The xDS proxy's socket: tells of each stream that an Envoy opens. */
import { fromCallback } from 'xstate';
import type { TrustBundleReceived } from '../../../machines/agent/secrets-protocol.ts';
import type { DownstreamOpened, SocketFailed, SocketListening } from '../../../machines/agent/xds-protocol.ts';
import { explainInOneLine } from '../../runtime/errors.ts';
import type { Ownership } from '../../runtime/ownership.ts';
import { type GrpcMethod, GrpcSocketServer } from '../grpc/grpc-server.ts';
import { methods, type Protocol } from './discovery-wire.ts';
import { keptBundle } from './told-bundle.ts';
import type { XdsStreams } from './xds-streams.ts';

/** Says in a stream's headers which Envoy it is: a parent and its child of a hot restart have one node. */
export const envoyHeader = 'x-chartpilot-envoy';
const longestName = 64;

export interface XdsServerEnvironment {
  readonly streams: XdsStreams;
  /** Another agent may have the socket before or after this one. */
  readonly ownership?: Ownership;
  /** Roots to trust that an agent before this one was told. */
  readonly keptBundle?: () => Uint8Array | undefined;
  /** Draws a number from 0 to 1: randomness for the chart. */
  readonly random?: () => number;
}

type Report = SocketListening | SocketFailed | DownstreamOpened | TrustBundleReceived;

export function xdsServer({ streams, ownership, keptBundle: kept, random = Math.random }: XdsServerEnvironment) {
  return fromCallback<{ type: never }, { socket: string }>(({ input, sendBack }) => {
    let server: GrpcSocketServer | undefined;
    let isStopped = false;
    const report = (event: Report): void => {
      if (!isStopped) sendBack(event);
    };
    const take =
      (protocol: Protocol): GrpcMethod =>
      (call) => {
        const envoy = String(call.headers[envoyHeader] ?? '').slice(0, longestName);
        report({ type: 'downstream.opened', stream: streams.add(call, envoy), envoy, protocol, chance: random() });
      };
    const taken = new Map(
      (Object.entries(methods) as [Protocol, string][]).map(([protocol, method]) => [method, take(protocol)]),
    );
    GrpcSocketServer.listen(input.socket, { methods: taken, ...(ownership && { ownership }) }).then(
      (listening) => {
        server = listening;
        if (isStopped) listening.close();
        else {
          const bundle = keptBundle(kept?.());
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
