/**
 * Distinguishes listeners without a socket from bound ones with the same name and address. A changed listener takes
 * over the sockets of its previous version unless address or socket options differ. Envoy 1.40 ignores a changed
 * `bind_to_port`: from false to true there is no socket to take over, so that Envoy never listens or crashes with
 * SIGSEGV; from true to false it keeps listening. With different socket options, Envoy creates the listener again,
 * which is correct in both cases.
 */
import { create } from '@bufbuild/protobuf';
import { type SocketOption, SocketOptionSchema } from '../../gen/envoy/config/core/v3/socket_option_pb.ts';

const description = 'unbound';

/** Socket option of all unbound listeners. They have no socket to set it on, and TCP_NODELAY would be harmless. */
export const unboundOption: SocketOption = create(SocketOptionSchema, {
  description,
  level: 6n,
  name: 1n,
  value: { case: 'intValue', value: 1n },
});

export function isUnboundOption(option: SocketOption): boolean {
  return option.description === description;
}
