/** Why a request to an API server failed: plain data, as charts take it. */
import { CodedError, type ErrorCode, withCode } from '../../runtime/errors.ts';

export type ApiFailure =
  /** It answered, with an error of its own, as HTTP status or in a watch as an event. */
  | {
      readonly kind: 'status';
      /** As in HTTP. */
      readonly code: number;
      /** Of the Kubernetes Status, as `Expired`, `NotFound`, `AlreadyExists`, `TooManyRequests`; empty when it says none. */
      readonly reason: string;
      readonly message: string;
      /** Reasons of the Status' causes: `ResourceVersionTooLarge` comes so. */
      readonly causes: readonly string[];
      /** The least time until the next try, bounded; absent when it says none. */
      readonly retryAfterMs?: number;
    }
  /** No connection: refused, no route, no such name, no TLS with what it presents. */
  | { readonly kind: 'unreachable'; readonly message: string }
  /** The connection is being ended (GOAWAY) and took no more: the next try has a connection of its own. No fault. */
  | { readonly kind: 'going away'; readonly message: string }
  /** The connection or stream ended in the middle. */
  | { readonly kind: 'closed'; readonly message: string }
  /** No answer within the limit. */
  | { readonly kind: 'timeout'; readonly message: string }
  /** It answered what no API server answers: no JSON, a line without end, a redirect. */
  | { readonly kind: 'invalid'; readonly message: string }
  /** There are no credentials to ask with: no token file, a plugin that fails. */
  | { readonly kind: 'credentials'; readonly message: string }
  /** Its signal was aborted, or the permit of a write was refused: nobody waits for it. */
  | { readonly kind: 'aborted'; readonly message: string };

const codes = {
  status: 'API_REQUEST_REJECTED',
  unreachable: 'API_SERVER_UNREACHABLE',
  'going away': 'API_CONNECTION_CLOSED',
  closed: 'API_CONNECTION_CLOSED',
  timeout: 'API_TIMEOUT',
  invalid: 'API_RESPONSE_INVALID',
  credentials: 'API_CREDENTIALS_INVALID',
  aborted: 'API_REQUEST_CANCELLED',
} as const satisfies Record<ApiFailure['kind'], ErrorCode>;

/** The only error that operations of the port reject with. Its message is that of the failure, with the code. */
export class ApiError extends CodedError {
  override readonly name = 'ApiError';
  readonly failure: ApiFailure;

  constructor(failure: ApiFailure, options: { cause?: unknown } = {}) {
    const code = codes[failure.kind];
    super(code, withCode(failure.message, code), options);
    this.failure = failure;
  }
}

/** With which HTTP status an API server answered; undefined where it did not, or the error is none of it. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof ApiError && error.failure.kind === 'status' ? error.failure.code : undefined;
}

/** It answered what no API server answers. */
export function invalid(message: string): ApiError {
  return new ApiError({ kind: 'invalid', message });
}

/** The Status object of Kubernetes (meta/v1), as far as it is read; a stranger made it, so any field may be anything. */
export interface Status {
  readonly code?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly details?: unknown;
}

/** Longer than client-go ever waits between two tries. A server that asks for a year is not obeyed. */
const maxRetryAfterMs = 60_000;

const maxMessageCharacters = 1_000;

/**
 * The failure that a Status object says: an error's body, or the object of a watch's ERROR event.
 *
 * @param httpCode where the Status says no code
 * @param retryAfter the header's text, in seconds; what is no number counts as absent
 */
export function failureOfStatus(status: Status, httpCode = 500, retryAfter?: string): ApiFailure & { kind: 'status' } {
  const details = asRecord(status.details);
  const seconds = retryAfter !== undefined && /^\d+$/.test(retryAfter) ? Number(retryAfter) : details.retryAfterSeconds;
  const causes = Array.isArray(details.causes) ? details.causes.slice(0, 20) : [];
  const code = Number.isInteger(status.code) ? (status.code as number) : httpCode;
  const reason = textOf(status.reason);
  return {
    kind: 'status',
    code,
    reason,
    message: textOf(status.message) || `HTTP status ${code}${reason === '' ? '' : ` (${reason})`}`,
    causes: causes.map((cause) => textOf(asRecord(cause).reason)).filter((text) => text !== ''),
    ...(typeof seconds === 'number' && seconds > 0 && { retryAfterMs: Math.min(seconds * 1_000, maxRetryAfterMs) }),
  };
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, maxMessageCharacters) : '';
}
