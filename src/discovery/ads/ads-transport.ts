/**
 * How a response's bytes get onto a stream. A port, because the generic way copies every response for every client; a
 * way that writes shared bytes as they are can take its place without anybody noticing.
 */
import { type ServerDuplexStream, status } from '@grpc/grpc-js';
import type { EndCode } from '../../../machines/discovery/ads-protocol.ts';
import type { ResponseParts } from './ads-response.ts';

export type AdsCall = ServerDuplexStream<Buffer, Buffer>;

export interface AdsTransport {
  /**
   * Writes one response.
   *
   * @param flushed called once when the bytes have left our hands, or never will.
   * @returns the response's length in bytes.
   */
  send(parts: ResponseParts, flushed: () => void): number;
  /** Ends the stream after what was sent. */
  end(code: EndCode, reason: string): void;
}

/** Through grpc-js' own stream. */
export function grpcTransport(call: AdsCall): AdsTransport {
  return {
    send(parts, flushed) {
      const message = Buffer.concat([parts.own, ...parts.shared]);
      call.write(message, flushed);
      return message.length;
    },
    end(code, reason) {
      if (code === 'OK') call.end();
      else call.emit('error', Object.assign(new Error(reason), { code: status[code], details: reason }));
    },
  };
}
