/**
 * The network namespace in which explain is compared with Envoy: every IPv4 address is local, and rules redirect
 * connections to ports.
 */
import { execFileSync, spawnSync } from 'node:child_process';

/**
 * Client addresses. No endpoint of a golden case has one of them, because Envoy's upstream connections leave from their
 * destination address.
 */
export const clientAddresses = ['10.66.0.1', '1.2.3.4', '10.9.0.5', '10.77.0.20', '192.0.2.7'] as const;

/** Start of the kernel's ephemeral ports. The harness uses them, and they are not redirected. */
const firstFreePort = 32_768;

/** Mark of connections that Envoy opens from the address of its client. */
const originalSourceMark = 1_337;

/** Shell command that runs a program in a new namespace; needs root. */
export function inNamespace(program: string, args: readonly string[]): { command: string; args: string[] } {
  const setUp = 'ip link set lo up && ip route add local 0.0.0.0/0 dev lo && exec "$0" "$@"';
  return { command: 'unshare', args: ['--net', 'sh', '-c', setUp, program, ...args] };
}

export interface Redirection {
  /** Destination of every upstream connection of Envoy. */
  readonly backendPort: number;
  readonly dnsPort: number;
  /** Port that receives all client connections; `undefined` if clients reach the port that they connect to. */
  readonly clientsTo: number | undefined;
}

/** Replaces the rules of this process's namespace. */
export function redirect({ backendPort, dnsPort, clientsTo }: Redirection): void {
  const clientMatch = `ip saddr { ${clientAddresses.join(', ')} }`;
  const rules = `
table ip explained
delete table ip explained
table ip explained {
  chain output {
    type nat hook output priority -100
    udp dport 53 redirect to :${dnsPort}
    ip daddr 127.0.0.1 tcp dport >= ${firstFreePort} accept
    meta mark ${originalSourceMark} meta l4proto tcp redirect to :${backendPort}
    ${clientMatch} ip daddr 127.0.0.0/8 accept
    ${clientMatch} meta l4proto tcp ${clientsTo === undefined ? 'accept' : `redirect to :${clientsTo}`}
    meta l4proto tcp redirect to :${backendPort}
  }
}
`;
  const { status, stderr } = spawnSync('nft', ['-f', '-'], { input: rules, encoding: 'utf8' });
  if (status !== 0) throw new Error(`nft: ${stderr}`);
}

/** Exits unless the process is in a separate namespace, because the rules would redirect the machine's connections. */
export function requireOwnNamespace(): void {
  const links = JSON.parse(execFileSync('ip', ['-json', 'link'], { encoding: 'utf8' })) as { ifname: string }[];
  if (links.some(({ ifname }) => ifname !== 'lo')) throw new Error('must run in a network namespace of its own');
}
