import { fromCallback } from 'xstate';
import type { DownstreamClosed, DownstreamEnd } from '../../../machines/agent/xds-protocol.ts';
import { type GrpcCode, grpcCodes } from '../../runtime/grpc/call-status.ts';
import type { XdsActivity } from './xds-activity.ts';
import type { XdsStreams } from './xds-streams.ts';

export interface DownstreamEnvironment {
  readonly streams: XdsStreams;
  readonly activity: XdsActivity;
}

export function downstream({ streams, activity }: DownstreamEnvironment) {
  return fromCallback<DownstreamEnd, { stream: number }>(({ input, sendBack, receive }) => {
    const call = streams.get(input.stream);
    let isOver = false;
    let isEnded = false;
    const onClosed = (reason: string): void => {
      if (!isOver) activity.downstreamEnds[isEnded ? 'error' : 'cancelled']++;
      if (!isOver) sendBack({ type: 'downstream.closed', reason } satisfies DownstreamClosed);
      isOver = true;
    };
    // Envoy closed the stream before its actor existed.
    if (call === undefined) queueMicrotask(() => onClosed('closed by Envoy before the first request'));
    call?.stream.once('close', () => onClosed(isEnded ? 'closed by the agent' : 'closed by Envoy'));
    receive(({ code, reason }) => {
      isEnded = true;
      call?.end(code in grpcCodes ? (code as GrpcCode) : 'UNKNOWN', reason);
    });
    return () => {
      isOver = true;
      call?.stream.destroy();
    };
  });
}
