/**
 * Every event about the agent's DNS server (spec/agent.md §9): who sends it, who receives it. A question is none: thousands come
 * in a second, and nothing is decided for them.
 */

// ---- agent ↔ dns, dns → status

/** agent → dns. Open the port that the workload's questions are redirected to. */
export type DnsStart = { type: 'dns.start' };
/** dns → agent. Questions are answered from now on. */
export type DnsListening = { type: 'dns.listening'; addresses: string[]; port: number };
/** dns → status. The control plane's names can be asked for: the first table has come, or is there again with the port. */
export type NamesKnown = { type: 'names.known' };
/** dns → agent. The port cannot be had: whoever asks would get no answer for as long as this pod lives. */
export type DnsFailed = { type: 'dns.failed'; reason: string };

// ---- dns/server → dns

/** dns/server → dns. All addresses are open, for UDP and TCP. */
export type DnsPortListening = { type: 'dns-port.listening'; addresses: string[]; port: number };
/** dns/server → dns. An address cannot be opened, or a socket that was open has failed; none is open any more. */
export type DnsPortFailed = { type: 'dns-port.failed'; reason: string };
/**
 * dns/server → dns. The control plane's table has taken the place of the one before. `names`: so many can be asked for; `skipped`:
 * hosts of the table that have no valid address or name.
 */
export type NameTableReceived = { type: 'name-table.received'; names: number; skipped: number };
