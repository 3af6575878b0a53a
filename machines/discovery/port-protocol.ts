/** Events of an optional port ({@link optionalPortMachine}). */

/** port → its chart. Clients are served at this address from now on. */
export type PortListening = { type: 'port.listening'; address: string };
/** port → its chart. The port cannot be opened, or its socket has failed; it is closed. */
export type PortFailed = { type: 'port.closed'; reason: string };
