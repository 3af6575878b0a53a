/** Another server of this workload's secrets may be the host's workload API, or another agent. */
import { fromPromise } from 'xstate';
import type { ServerFound } from '../../../machines/agent/secrets/secrets.machine.ts';
import { GrpcError } from '../../runtime/grpc/call-status.ts';
import { GrpcConnection, unary } from '../../runtime/grpc/grpc-client.ts';
import type { Ownership } from '../../runtime/ownership.ts';
import { agentMethod } from './secret-server.ts';

const limits = { dialMs: 1_000, keepAliveMs: 30_000, keepAliveTimeoutMs: 10_000, windowBytes: 65_536 };

/** @param ownership of an agent that replaces another one, whose server is ignored */
export function detectServer(ownership?: Ownership) {
  return fromPromise<ServerFound, { socket: string }>(async ({ input, signal }) => {
    try {
      const connection = await GrpcConnection.open({ address: { path: input.socket } }, limits, signal);
      try {
        const detectedServer = await serverBehind(connection);
        return detectedServer === 'another agent' && ownership?.isOurs === false ? 'nobody' : detectedServer;
      } finally {
        connection.close();
      }
    } catch {
      return 'nobody';
    }
  });
}

/** A server that is not an agent responds that it does not implement the method. An agent that hangs or exits does not respond and is ignored. */
async function serverBehind(connection: GrpcConnection): Promise<ServerFound> {
  try {
    await unary(connection, agentMethod, {}, new Uint8Array(), { limitMs: 1_000, maxBytes: 1_024 });
    return 'another agent';
  } catch (error) {
    return error instanceof GrpcError && error.code === 'UNIMPLEMENTED' ? 'a server' : 'nobody';
  }
}
