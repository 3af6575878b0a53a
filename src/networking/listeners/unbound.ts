/**
 * What tells a listener without a socket from one of the same name and address that has one. A listener that changes
 * takes over the sockets of the one before it, unless its address or its socket options are others: Envoy 1.40 does not
 * look at `bind_to_port`. From false to true there is no socket to take over, so that it never listens, or ends with
 * SIGSEGV; from true to false it goes on listening. With other socket options it begins anew, which is right both ways.
 */
import { create } from '@bufbuild/protobuf';
import { type SocketOption, SocketOptionSchema } from '../../gen/envoy/config/core/v3/socket_option_pb.ts';

const description = 'unbound';

/** The socket option of every listener that is not bound: there is no socket that it could be set on, and TCP_NODELAY would do no harm. */
export const unboundOption: SocketOption = create(SocketOptionSchema, {
  description,
  level: 6n,
  name: 1n,
  value: { case: 'intValue', value: 1n },
});

export function isUnboundOption(option: SocketOption): boolean {
  return option.description === description;
}
