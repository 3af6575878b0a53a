/** Reasons why a request to an API server failed, as plain data for charts. */
import { appendCode, CodedError, type ErrorCode } from '../../runtime/errors.ts';

export type ApiFailure =
  /** The server responded with an error status, or a watch received an ERROR event. */
  | {
      readonly kind: 'status';
      readonly code: number;
      /** Reason of the Kubernetes Status, such as `Expired`, `NotFound` or `TooManyRequests`. Can be empty. */
      readonly reason: string;
      readonly message: string;
      /** Reasons in the causes of the Status, such as `ResourceVersionTooLarge`. */
      readonly causes: readonly string[];
      /** At most a minute. */
      readonly retryAfterMs?: number;
    }
  /** For example a refused connection, no route, an unknown host or a TLS error. */
  | { readonly kind: 'unreachable'; readonly message: string }
  /** The connection received GOAWAY, which is not a fault: the next attempt uses a new connection. */
  | { readonly kind: 'going away'; readonly message: string }
  | { readonly kind: 'closed'; readonly message: string }
  | { readonly kind: 'timeout'; readonly message: string }
  /** The response is not one of an API server: for example no JSON, an endless line or a redirect. */
  | { readonly kind: 'invalid'; readonly message: string }
  /** A token file is missing, or a credential plugin failed. */
  | { readonly kind: 'credentials'; readonly message: string }
  /** The signal was aborted, or the permit of a write was denied. */
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

export class ApiError extends CodedError {
  override readonly name = 'ApiError';
  readonly failure: ApiFailure;

  constructor(failure: ApiFailure, options: { cause?: unknown } = {}) {
    const code = codes[failure.kind];
    super(code, appendCode(failure.message, code), options);
    this.failure = failure;
  }
}

/** Returns `undefined` for errors that are not an HTTP response. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof ApiError && error.failure.kind === 'status' ? error.failure.code : undefined;
}

export function invalidResponse(message: string): ApiError {
  return new ApiError({ kind: 'invalid', message });
}

export interface StatusBody {
  readonly code?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly details?: unknown;
}

/** Exceeds the delays between client-go's retries. */
const maxRetryAfterMs = 60_000;

const maxMessageCharacters = 1_000;

/**
 * @param httpCode used if the Status has no code
 * @param retryAfter header text in seconds, ignored if it is not a number
 */
export function failureOfStatus(
  status: StatusBody,
  httpCode = 500,
  retryAfter?: string,
): ApiFailure & { kind: 'status' } {
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
