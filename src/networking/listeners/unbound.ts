/**
 * Distinguishes listeners without a socket from bound listeners with the same name and address. A changed listener takes over the sockets of its
 * previous version unless address or socket options differ. Envoy 1.40 ignores a changed `bind_to_port`. If it changes to true, there is no socket to
 * take over, so Envoy never listens or crashes with SIGSEGV. If it changes to false, Envoy continues to listen.
 */
import { create } from '@bufbuild/protobuf';
import { type SocketOption, SocketOptionSchema } from '../../gen/envoy/config/core/v3/socket_option_pb.ts';

const description = 'unbound';

/** Socket option of all unbound listeners. It has no effect without a socket, and TCP_NODELAY would be harmless. */
export const unboundOption: SocketOption = create(SocketOptionSchema, {
  description,
  level: 6n,
  name: 1n,
  value: { case: 'intValue', value: 1n },
});

export function isUnboundOption(option: SocketOption): boolean {
  return option.description === description;
}
