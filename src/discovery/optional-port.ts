import { fromCallback } from 'xstate';
import type { PortFailed, PortListening } from '../../machines/discovery/port-protocol.ts';
import { messageOf } from '../runtime/errors.ts';
import { formatAddress, type ListenAddress } from './listen-address.ts';

export interface OptionalPortServer {
  /** @returns the address with the actual port. If the port cannot be opened, closes the socket and rejects. */
  open(): Promise<string>;
  close(): void;
}

/** @param create called when the port is opened; its parameter `onFailed` reports a failure of the open socket */
export function optionalPort(
  address: ListenAddress,
  create: (onFailed: (error: unknown) => void) => OptionalPortServer,
) {
  return fromCallback<{ type: never }, undefined>(({ sendBack }) => {
    let isStopped = false;
    const report = (event: PortListening | PortFailed): void => {
      if (!isStopped) sendBack(event);
    };
    const reportFailure = (error: unknown): void => {
      server.close();
      report({ type: 'port.closed', reason: `${formatAddress(address)}: ${messageOf(error)}` });
    };
    const server = create(reportFailure);
    void server.open().then((openedAddress) => {
      if (isStopped) server.close();
      report({ type: 'port.listening', address: openedAddress });
    }, reportFailure);
    return () => {
      isStopped = true;
      server.close();
    };
  });
}
