import { nameServerMachine } from '../../../machines/discovery/names/name-server.machine.ts';
import type { ListenAddress } from '../listen-address.ts';
import { optionalPort } from '../optional-port.ts';
import { NameServer, type NameServerOptions } from './name-server.ts';

/** @param options called when the port is opened, because the certificate is known by then */
export function nameServerWithEffects(
  address: ListenAddress,
  options: () => Omit<NameServerOptions, 'address' | 'onFailed'>,
) {
  const port = optionalPort(address, (onFailed) => new NameServer({ ...options(), address, onFailed }));
  return nameServerMachine.provide({ actors: { port } });
}
