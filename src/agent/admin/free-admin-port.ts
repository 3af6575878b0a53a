/** Selects an admin port for Envoys with the spare base ID if none is configured. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

export interface PortRange {
  readonly first: number;
  readonly end: number;
}

const attempts = 100;
/** Lower ports include those of Istio and well-known services. */
const minSparePort = 16_000;
const usualFirstOutgoingPort = 32_768;

/**
 * @param takenPort port of the first base ID, which is never chosen
 * @throws Error if no port is free
 */
export async function freeAdminPort(
  host: string,
  takenPort: number,
  { first, end }: PortRange = quietPorts(),
): Promise<number> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const port = first + Math.floor(Math.random() * (end - first));
    if (port !== takenPort && (await isFree(host, port))) return port;
  }
  throw new Error(`no free port for the Envoy admin interface from ${first} to ${end - 1}: set --spareAdminPort`);
}

/** Ports outside the ephemeral range: no outgoing connection takes the port while it moves from parent to child. */
function quietPorts(): PortRange {
  return { first: minSparePort, end: Math.max(minSparePort + 1, firstOutgoingPort()) };
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
