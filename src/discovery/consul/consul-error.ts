import type { ConsulFailure } from '../../../machines/discovery/consul/consul-protocol.ts';
import { InvalidCatalog } from '../../model/services/consul/catalog-json.ts';
import { CodedError, type ErrorCode, messageOf, withCode } from '../../runtime/errors.ts';

export class ConsulError extends CodedError {
  override readonly name = 'ConsulError';
  readonly failure: ConsulFailure;

  constructor({ reason, status }: ConsulFailure) {
    const code = codeOf(status);
    super(code, withCode(reason, code));
    this.failure = { reason: withCode(reason, code), status };
  }
}

function codeOf(status: number): ErrorCode {
  if (status === 0) return 'CONSUL_UNREACHABLE';
  return status === 401 || status === 403 ? 'CONSUL_TOKEN_REJECTED' : 'CONSUL_RESPONSE_INVALID';
}

export function failureIn(error: unknown): ConsulFailure {
  if (error instanceof ConsulError) return error.failure;
  const reason = messageOf(error);
  return error instanceof InvalidCatalog ? new ConsulError({ reason, status: 200 }).failure : { reason, status: 0 };
}
