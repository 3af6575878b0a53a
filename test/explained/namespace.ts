/** The network namespace in which explain is compared with Envoy: every IPv4 address is local, and rules decide which port gets a connection. */
import { execFileSync, spawnSync } from 'node:child_process';

/** Addresses that clients send from. No endpoint of a golden case has one: Envoy's own connections leave from where they go. */
export const clientAddresses = ['10.66.0.1', '1.2.3.4', '10.9.0.5', '10.77.0.20', '192.0.2.7'] as const;

/** Ports that the kernel chooses start here: those of the harness, which are reached as they are. */
const firstFreePort = 32_768;

/** Of connections that Envoy opens from the address of its client. */
const originalSourceMark = 1_337;

/** The shell command that runs a program in a namespace of its own; needs root. */
export function inNamespace(program: string, args: readonly string[]): { command: string; args: string[] } {
  const setUp = 'ip link set lo up && ip route add local 0.0.0.0/0 dev lo && exec "$0" "$@"';
  return { command: 'unshare', args: ['--net', 'sh', '-c', setUp, program, ...args] };
}

export interface Redirection {
  /** Where every connection that Envoy opens ends. */
  readonly backendPort: number;
  readonly dnsPort: number;
  /** The port that takes what clients send; `undefined`: connections of clients reach the port that they name. */
  readonly clientsTo: number | undefined;
}

/** Replaces the rules of the namespace that this process runs in. */
export function redirect({ backendPort, dnsPort, clientsTo }: Redirection): void {
  const ofClients = `ip saddr { ${clientAddresses.join(', ')} }`;
  const rules = `
table ip explained
delete table ip explained
table ip explained {
  chain output {
    type nat hook output priority -100
    udp dport 53 redirect to :${dnsPort}
    ip daddr 127.0.0.1 tcp dport >= ${firstFreePort} accept
    meta mark ${originalSourceMark} meta l4proto tcp redirect to :${backendPort}
    ${ofClients} ip daddr 127.0.0.0/8 accept
    ${ofClients} meta l4proto tcp ${clientsTo === undefined ? 'accept' : `redirect to :${clientsTo}`}
    meta l4proto tcp redirect to :${backendPort}
  }
}
`;
  const { status, stderr } = spawnSync('nft', ['-f', '-'], { input: rules, encoding: 'utf8' });
  if (status !== 0) throw new Error(`nft: ${stderr}`);
}

/** Ends the process unless it is in a namespace of its own: the rules would redirect the machine's connections. */
export function requireOwnNamespace(): void {
  const links = JSON.parse(execFileSync('ip', ['-json', 'link'], { encoding: 'utf8' })) as { ifname: string }[];
  if (links.some(({ ifname }) => ifname !== 'lo')) throw new Error('must run in a network namespace of its own');
}
