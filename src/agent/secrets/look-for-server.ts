/** Whether somebody serves this workload its secrets already (spec/agent.md §7.1): a workload API of the host, or another agent. */
import { fromPromise } from 'xstate';
import type { ServerFound } from '../../../machines/agent/secrets/secrets.machine.ts';
import { GrpcError } from '../../runtime/grpc/call-status.ts';
import { GrpcConnection, unary } from '../../runtime/grpc/grpc-client.ts';
import type { Ownership } from '../../runtime/ownership.ts';
import { agentMethod } from './secret-server.ts';

const limits = { dialMs: 1_000, keepAliveMs: 30_000, keepAliveAnswerMs: 10_000, windowBytes: 65_536 };

/** @param ownership of an agent that is to take the place of another one, which answers until then: that is as good as nobody */
export function lookForServer(ownership?: Ownership) {
  return fromPromise<ServerFound, { socket: string }>(async ({ input, signal }) => {
    try {
      const connection = await GrpcConnection.open({ address: { path: input.socket } }, limits, signal);
      try {
        const found = await whoAnswers(connection);
        return found === 'another agent' && ownership?.isOurs === false ? 'nobody' : found;
      } finally {
        connection.close();
      }
    } catch {
      return 'nobody';
    }
  });
}

/**
 * A server of somebody else says that it does not know the method. Whoever says nothing is no server to leave Envoy to: an agent that is ending,
 * or hangs. If it stays, the socket cannot be opened, and that is said.
 */
async function whoAnswers(connection: GrpcConnection): Promise<ServerFound> {
  try {
    await unary(connection, agentMethod, {}, new Uint8Array(), { limitMs: 1_000, maxBytes: 1_024 });
    return 'another agent';
  } catch (error) {
    return error instanceof GrpcError && error.code === 'UNIMPLEMENTED' ? 'a server' : 'nobody';
  }
}
