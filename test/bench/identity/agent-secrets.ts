/**
 * Measures the released `pilot-agent`, with a certificate of the authority and an Envoy configured through it: response time for a secret, and
 * memory.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from '../../../src/runtime/package-root.ts';
import { envoyBinary } from '../../fixtures/real-envoy.ts';
import { eventually } from '../../harness/eventually.ts';
import { freePorts } from '../../harness/free-ports.ts';
import { SecretClient } from '../../harness/secret-client.ts';
import { memoryOf } from '../memory-usage.ts';
import type { Programs } from '../programs.ts';

export interface AgentCredentials {
  readonly securePort: number;
  /** PEM. */
  readonly roots: string;
  readonly token: string;
}

export interface AgentFigures {
  /** Time from a request on a new stream to its response. */
  readonly responseMs: readonly number[];
  /** Resident memory after some SDS streams and an idle period, as with an Envoy. */
  readonly rssMib: number;
  readonly rssAfterStreamsMib: number;
}

const startsWithinMs = 60_000;
const maxResponseMs = 10_000;
const restMs = 5_000;

/** @param streams number of sequential SDS streams that request the certificate */
export async function measureAgent(
  programs: Programs,
  credentials: AgentCredentials,
  streams: number,
): Promise<AgentFigures> {
  const [admin, status, dns] = await freePorts(3);
  const folder = join(programs.root, 'agent');
  const secrets = join(folder, 'var/run/secrets');
  for (const name of ['tokens', 'istio']) mkdirSync(join(secrets, name), { recursive: true });
  writeFileSync(join(secrets, 'tokens/istio-token'), credentials.token);
  writeFileSync(join(secrets, 'istio/root-cert.pem'), credentials.roots);
  // The agent resolves relative paths against its working directory.
  const inFolder = ['-c', 'cd "$0" && exec "$@"', folder, join(packageRoot(), 'bin/pilot-agent')];
  const agent = programs.start(
    'pilot-agent',
    '/bin/sh',
    [
      ...inFolder,
      ...[
        'proxy',
        'router',
        '--discoveryAddress',
        `localhost:${credentials.securePort}`,
        '--binaryPath',
        envoyBinary(),
      ],
      ...['--proxyAdminPort', String(admin), '--statusPort', String(status), '--runDir', join(folder, 'run')],
      ...['--configPath', join(folder, 'proxy'), '--concurrency', '1', '--terminationDrainDuration', '200ms'],
    ],
    {
      ...{ POD_NAME: 'account-0', POD_NAMESPACE: 'default', SERVICE_ACCOUNT: 'account-0', INSTANCE_IP: '127.0.0.1' },
      ...{ ENVOY_STATUS_PORT: '0', ENVOY_PROMETHEUS_PORT: '0', DNS_PROXY_ADDR: `127.0.0.1:${dns}` },
    },
  );
  const isReady = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${status}/healthz/ready`)).ok;
  const hopeless = (): string | undefined => agent.hopeless();
  await eventually('Envoy has its configuration through the agent', isReady, { deadlineMs: startsWithinMs, hopeless });
  const socket = join(secrets, 'workload-spiffe-uds/socket');
  await measureResponse(socket);
  await sleep(restMs);
  const { rssMib } = memoryOf(agent.pid);
  const responseMs: number[] = [];
  for (let i = 0; i < streams; i++) responseMs.push(await measureResponse(socket));
  return { responseMs, rssMib, rssAfterStreamsMib: memoryOf(agent.pid).rssMib };
}

/** Opens a new stream, as Envoy does for each secret. */
async function measureResponse(socket: string): Promise<number> {
  const client = await SecretClient.open(socket);
  try {
    const since = performance.now();
    client.request('default');
    while (client.responses.length === 0) {
      if (performance.now() - since > maxResponseMs)
        throw new Error(`no certificate: ${client.ended ?? 'no response'}`);
      await setImmediate();
    }
    const ms = performance.now() - since;
    const [response] = client.responses;
    if (response!.chain === '' || response!.key === '') throw new Error('a response without a certificate');
    client.acknowledge(response!, 'default');
    return ms;
  } finally {
    client.close();
  }
}
