/**
 * Distinguishes a listener without a socket from a bound one of the same name and address. A changed listener takes
 * over its predecessor's sockets unless its address or socket options differ. Envoy 1.40 does not compare
 * `bind_to_port`. From false to true there is no socket to take over, so the listener never listens, or Envoy crashes
 * with SIGSEGV. From true to false it keeps listening. With different socket options, Envoy creates the listener again,
 * which is correct in both directions.
 */
import { create } from '@bufbuild/protobuf';
import { type SocketOption, SocketOptionSchema } from '../../gen/envoy/config/core/v3/socket_option_pb.ts';

const description = 'unbound';

/**
 * The socket option of every listener that is not bound. It has no socket to set the option on, and TCP_NODELAY would
 * be harmless.
 */
export const unboundOption: SocketOption = create(SocketOptionSchema, {
  description,
  level: 6n,
  name: 1n,
  value: { case: 'intValue', value: 1n },
});

export function isUnboundOption(option: SocketOption): boolean {
  return option.description === description;
}
