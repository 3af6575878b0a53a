/** Status of a gRPC call (gRPC over HTTP/2, "Responses"). */

import type { IncomingHttpHeaders } from 'node:http2';
import { visibleLine } from '../visible-text.ts';

export const grpcCodes = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type GrpcCode = keyof typeof grpcCodes;

const names = new Map(Object.entries(grpcCodes).map(([name, code]) => [code as number, name as GrpcCode]));

export class GrpcError extends Error {
  override readonly name = 'GrpcError';
  readonly code: GrpcCode;
  readonly details: string;
  /** Delay that the server requests (`grpc-retry-pushback-ms`, `retry-after`). */
  readonly retryAfterMs: number | undefined;

  constructor(code: GrpcCode, details: string, options: { cause?: unknown; retryAfterMs?: number | undefined } = {}) {
    super(`${code}: ${details}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = details;
    this.retryAfterMs = options.retryAfterMs;
  }
}

const maxDetails = 1_000;

/** The status is in trailers or in a Trailers-Only response. A missing status counts as a broken call. */
export function statusOf(headers: IncomingHttpHeaders): GrpcError | undefined {
  const text = headers['grpc-status'];
  if (text === undefined) return statusOfHttp(headers);
  const code = names.get(Number(text)) ?? 'UNKNOWN';
  if (code === 'OK') return undefined;
  return new GrpcError(code, decodeDetails(String(headers['grpc-message'] ?? '')), {
    retryAfterMs: retryAfter(headers),
  });
}

/** A proxy in front of the server may respond with an HTTP status (gRPC, "HTTP to gRPC Status Code Mapping"). */
function statusOfHttp(headers: IncomingHttpHeaders): GrpcError {
  const status = Number(headers[':status']);
  const codes: Record<number, GrpcCode> = {
    400: 'INTERNAL',
    401: 'UNAUTHENTICATED',
    403: 'PERMISSION_DENIED',
    404: 'UNIMPLEMENTED',
    429: 'UNAVAILABLE',
    502: 'UNAVAILABLE',
    503: 'UNAVAILABLE',
    504: 'UNAVAILABLE',
  };
  if (!Number.isFinite(status) || status === 200) return new GrpcError('UNKNOWN', 'stream ended without a gRPC status');
  return new GrpcError(codes[status] ?? 'UNKNOWN', `HTTP status ${status}`, { retryAfterMs: retryAfter(headers) });
}

/** A proxy may request an hour although the server is available within a second. */
const maxRetryDelayMs = 600_000;

function retryAfter(headers: IncomingHttpHeaders): number | undefined {
  const pushback = Number(headers['grpc-retry-pushback-ms'] ?? Number.NaN);
  const ms = Number.isFinite(pushback) ? pushback : Number(headers['retry-after'] ?? Number.NaN) * 1000;
  return ms >= 0 ? Math.min(ms, maxRetryDelayMs) : undefined;
}

function decodeDetails(text: string): string {
  try {
    return decodeURIComponent(text.slice(0, maxDetails));
  } catch {
    return text.slice(0, maxDetails);
  }
}

export function trailersOf(code: GrpcCode, details = ''): Record<string, string> {
  const trailers = { 'grpc-status': String(grpcCodes[code]) };
  return details === ''
    ? trailers
    : { ...trailers, 'grpc-message': encodeURIComponent(visibleLine(details, maxDetails)) };
}
