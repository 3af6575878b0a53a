/** A port for the admin interface of an Envoy under the spare base id, where none was named for it. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** Ports from `first` to the one before `end`. */
export interface PortRange {
  readonly first: number;
  readonly end: number;
}

const attempts = 100;
/** Below lie the ports that Istio's programs are known by, and those of well-known services. */
const lowestSparePort = 16_000;
const usualFirstOutgoingPort = 32_768;

/**
 * @param taken that of the first base id, also while no Envoy has it
 * @throws Error where none was found
 */
export async function freeAdminPort(
  host: string,
  taken: number,
  { first, end }: PortRange = quietPorts(),
): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const port = first + Math.floor(Math.random() * (end - first));
    if (port !== taken && (await isFree(host, port))) return port;
  }
  throw new Error(`no free port for the Envoy admin interface from ${first} to ${end - 1}: set --spareAdminPort`);
}

/** No outgoing connection takes one of these while it moves from a parent to its child. */
function quietPorts(): PortRange {
  return { first: lowestSparePort, end: Math.max(lowestSparePort + 1, firstOutgoingPort()) };
}

function firstOutgoingPort(): number {
  try {
    return Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), 10);
  } catch {
    return usualFirstOutgoingPort;
  }
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
