/** DNS queries are not events: thousands arrive per second. */

/** agent → dns. Open the port to which DNS queries of the workload are redirected. */
export type DnsStart = { type: 'dns.start' };
/** dns → agent. The server responds to queries. */
export type DnsListening = { type: 'dns.listening'; addresses: string[]; port: number };
/** dns → status. Names can be resolved: the first name table was received, or the port was reopened with a table. */
export type NamesAvailable = { type: 'names.available' };
/** dns → agent. The port cannot be opened, so redirected queries would fail for the life of the pod. */
export type DnsFailed = { type: 'dns.failed'; reason: string };

/** dns/server → dns. All addresses are open, for UDP and TCP. */
export type DnsPortListening = { type: 'dns-port.listening'; addresses: string[]; port: number };
/** dns/server → dns. An address cannot be opened, or an open socket failed. All sockets are closed. */
export type DnsPortFailed = { type: 'dns-port.failed'; reason: string };
/**
 * dns/server → dns. A name table of the control plane replaced the previous one. `names`: number of names. `skipped`: hosts without a valid
 * address or name.
 */
export type NameTableReceived = { type: 'name-table.received'; names: number; skipped: number };
