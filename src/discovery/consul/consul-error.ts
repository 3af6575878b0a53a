import type { ConsulFailure } from '../../../machines/discovery/consul/consul-protocol.ts';
import { InvalidCatalog } from '../../model/services/consul/catalog-json.ts';
import { appendCode, CodedError, type ErrorCode, messageOf } from '../../runtime/errors.ts';

export class ConsulError extends CodedError {
  override readonly name = 'ConsulError';
  readonly failure: ConsulFailure;

  constructor({ reason, status }: ConsulFailure) {
    const code = codeOf(status);
    super(code, appendCode(reason, code));
    this.failure = { reason: appendCode(reason, code), status };
  }
}

function codeOf(status: number): ErrorCode {
  if (status === 0) return 'CONSUL_UNREACHABLE';
  return status === 401 || status === 403 ? 'CONSUL_TOKEN_REJECTED' : 'CONSUL_RESPONSE_INVALID';
}

export function consulFailureOf(error: unknown): ConsulFailure {
  if (error instanceof ConsulError) return error.failure;
  const reason = messageOf(error);
  return error instanceof InvalidCatalog ? new ConsulError({ reason, status: 200 }).failure : { reason, status: 0 };
}
