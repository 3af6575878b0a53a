import { fromCallback } from 'xstate';
import type {
  AccessLogSocketClosed,
  AccessLogSocketListening,
  AccessLogStreamClosed,
  AccessLogStreamOpened,
  AccessLogsCongested,
  AccessLogsRelieved,
} from '../../../machines/agent/access-log-protocol.ts';
import { accessLogsMachine } from '../../../machines/agent/access-logs/access-logs.machine.ts';
import type { StreamRules } from '../../model/standard-metrics/stream-rules.ts';
import { explainInOneLine, messageOf } from '../../runtime/errors.ts';
import { GrpcError } from '../../runtime/grpc/call-status.ts';
import { type FramePiece, FrameReader } from '../../runtime/grpc/grpc-frames.ts';
import type { Ownership } from '../../runtime/ownership.ts';
import { type GrpcServerLimits, GrpcSocketServer, type ServerCall } from '../grpc/grpc-server.ts';
import { rulesOf } from './known-rules.ts';
import { readLogMessage } from './log-entries.ts';
import type { MeshMetrics } from './mesh-metrics.ts';
import { ReadingBudget } from './reading-budget.ts';
import { WireError } from './wire-cursor.ts';

const method = '/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs';

/** Each Envoy worker has a connection with a stream per kind of log; during a hot restart there are two Envoys. */
const serverLimits: Partial<GrpcServerLimits> = {
  connections: 1_024,
  streams: 64,
  callRate: { burst: 128, perSecond: 16 },
  totalCallRate: { burst: 4_096, perSecond: 256 },
  // Envoy buffers up to 1 MiB more per stream, and then drops entries.
  windowBytes: 256 * 1024,
};
/** Envoy sends its buffer when it has 64 KiB, or a single longer entry. */
const maxMessageBytes = 2 * 1024 * 1024;

export interface AccessLogsEnvironment {
  readonly metrics: MeshMetrics;
  readonly ownership?: Ownership;
  readonly budget?: ReadingBudget;
}

type Report =
  | AccessLogSocketListening
  | AccessLogSocketClosed
  | AccessLogStreamOpened
  | AccessLogStreamClosed
  | AccessLogsCongested
  | AccessLogsRelieved;

export function accessLogsWithEffects(environment: AccessLogsEnvironment) {
  return accessLogsMachine.provide({ actors: { server: accessLogServer(environment) } });
}

function accessLogServer({ metrics, ownership, budget = new ReadingBudget() }: AccessLogsEnvironment) {
  return fromCallback<{ type: never }, { socket: string }>(({ input, sendBack }) => {
    let server: GrpcSocketServer | undefined;
    let isStopped = false;
    let openStreams = 0;
    const report = (event: Report): void => {
      if (!isStopped) sendBack(event);
    };
    const unsubscribe = budget.subscribe((isCongested) =>
      report({ type: isCongested ? 'access-logs.congested' : 'access-logs.relieved' }),
    );
    const acceptCall = (call: ServerCall): void => {
      openStreams++;
      report({ type: 'access-log-stream.opened', open: openStreams });
      void receive(call, metrics, budget).then((reason) => {
        openStreams--;
        report({ type: 'access-log-stream.closed', open: openStreams, reason });
      });
    };
    const options = { methods: new Map([[method, acceptCall]]), limits: serverLimits, ...(ownership && { ownership }) };
    GrpcSocketServer.listen(input.socket, options).then(
      (startedServer) => {
        server = startedServer;
        if (isStopped) startedServer.close();
        else report({ type: 'access-log-socket.listening', socket: input.socket });
      },
      (error: unknown) => report({ type: 'access-log-socket.closed', reason: explainInOneLine(error) }),
    );
    return () => {
      isStopped = true;
      unsubscribe();
      server?.close();
    };
  });
}

async function receive(call: ServerCall, metrics: MeshMetrics, budget: ReadingBudget): Promise<string> {
  const reader = new FrameReader({ wholeBytes: maxMessageBytes, maxBytes: maxMessageBytes });
  let rules: StreamRules | undefined;
  const takeMessage = ({ bytes }: FramePiece): void => {
    const { logName, entries } = readLogMessage(bytes.subarray(5));
    if (logName !== undefined) rules = rulesOf(logName);
    if (rules === undefined) throw new GrpcError('INVALID_ARGUMENT', 'log name is not one of standard metrics');
    for (const entry of entries) metrics.recordEntry(entry, rules);
  };
  try {
    // Keep the stream open after an error in the loop, to send the status.
    for await (const chunk of call.stream.iterator({ destroyOnReturn: false })) {
      const startedAtMs = performance.now();
      reader.push(chunk as Buffer, takeMessage);
      // Pauses Envoy's stream through HTTP/2 flow control.
      await budget.spend(performance.now() - startedAtMs);
    }
    call.end('OK');
    return '';
  } catch (error) {
    const isRefused = error instanceof GrpcError;
    // Other errors concern the connection, which Envoy reopens.
    if (!isRefused && !(error instanceof WireError)) return '';
    metrics.countLost(isRefused && error.code === 'RESOURCE_EXHAUSTED' ? 'too long' : 'invalid');
    call.end(isRefused ? error.code : 'INVALID_ARGUMENT', messageOf(error));
    return messageOf(error);
  }
}
