/** Reason for which a request to an API server failed, as plain data for charts. */
import { CodedError, type ErrorCode, withCode } from '../../runtime/errors.ts';

export type ApiFailure =
  /** The server responded with an error, as HTTP status or as an event of a watch. */
  | {
      readonly kind: 'status';
      readonly code: number;
      /** Reason of the Kubernetes Status, such as `Expired`, `NotFound`, `AlreadyExists`, `TooManyRequests`; empty if it has none. */
      readonly reason: string;
      readonly message: string;
      /** Reasons of the causes of the Status, such as `ResourceVersionTooLarge`. */
      readonly causes: readonly string[];
      /** Minimum delay before a retry, bounded; absent if not specified. */
      readonly retryAfterMs?: number;
    }
  /** No connection: refused, no route, name not found, TLS failed. */
  | { readonly kind: 'unreachable'; readonly message: string }
  /** The connection is shutting down (GOAWAY) and accepted no more streams. The next attempt uses a new connection; not a fault. */
  | { readonly kind: 'going away'; readonly message: string }
  /** The connection or stream ended early. */
  | { readonly kind: 'closed'; readonly message: string }
  | { readonly kind: 'timeout'; readonly message: string }
  /** Not a response of an API server: no JSON, an unbounded line, a redirect. */
  | { readonly kind: 'invalid'; readonly message: string }
  /** No credentials: no token file, or a failing plugin. */
  | { readonly kind: 'credentials'; readonly message: string }
  /** The signal was aborted, or the permit of a write was denied. No caller waits for the result. */
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

/** The only error that operations of the port reject with. Its message is that of the failure with its code. */
export class ApiError extends CodedError {
  override readonly name = 'ApiError';
  readonly failure: ApiFailure;

  constructor(failure: ApiFailure, options: { cause?: unknown } = {}) {
    const code = codes[failure.kind];
    super(code, withCode(failure.message, code), options);
    this.failure = failure;
  }
}

/** HTTP status of an API server's response, or `undefined` for other errors. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof ApiError && error.failure.kind === 'status' ? error.failure.code : undefined;
}

export function invalid(message: string): ApiError {
  return new ApiError({ kind: 'invalid', message });
}

/** A Kubernetes Status (meta/v1) as received: any field may have any type. */
export interface Status {
  readonly code?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly details?: unknown;
}

/** Longer than client-go waits between retries. A longer Retry-After is shortened. */
const maxRetryAfterMs = 60_000;

const maxMessageCharacters = 1_000;

/**
 * Converts a Status: the body of an error, or the object of a watch's ERROR event.
 *
 * @param httpCode used if the Status has no code
 * @param retryAfter header text in seconds; ignored if it is no number
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
