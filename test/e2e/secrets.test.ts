/**
 * An Envoy gets its certificate and roots from its agent, and the agent from pilot-discovery's authority. They are renewed under load, without a
 * failed request or a restart.
 */
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createAdminClient } from '../../src/agent/admin/admin-client.ts';
import { createRequest } from '../../src/identity/certificate-request.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { envoyBinary } from '../fixtures/real-envoy.ts';
import { CertificateCaller, requestCertificateChain } from '../harness/certificate-caller.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Program } from '../harness/program.ts';
import { sized } from '../harness/size-of-run.ts';

/** The long form has the required number of rotations under load; each takes two seconds. */
const rotations = sized({ short: 6, full: 100 });
const limitMs = 200_000 + rotations * 5_000;
vi.setConfig({ testTimeout: limitMs + 600_000 });
let root: string;
let agent: Program;
let discovery: Program;
let ports: { admin: number; status: number; listener: number; secure: number };
let client: { cert: string; key: string; ca: string };
let listening: TLSSocket;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'secrets-'));
  const [grpc, securePort, http, monitoring, admin, status, listener] = (await freePorts(7)) as number[];
  ports = { admin: admin!, status: status!, listener: listener!, secure: securePort! };
  mkdirSync(join(root, 'mesh'));
  const at = (port: number | undefined): string => `127.0.0.1:${port}`;
  discovery = Program.start('pilot-discovery', {
    args: [
      ...['discovery', '--grpcAddr', at(grpc), '--secureGRPCAddr', at(securePort), '--httpAddr', at(http)],
      ...['--monitoringAddr', at(monitoring), '--httpsAddr=', '--registries=', '--configDir', join(root, 'mesh')],
    ],
    env: { ...process.env, SELF_SIGNED_CA_DIR: join(root, 'ca') },
    cwd: root,
  });
  await eventually('the control plane is ready', async () => (await fetch(`http://${at(http)}/ready`)).ok);
  const caller = new CertificateCaller(join(root, 'ca'));
  mkdirSync(join(root, 'var/run/secrets/tokens'), { recursive: true });
  mkdirSync(join(root, 'var/run/secrets/istio'), { recursive: true });
  const token = execFileSync(join(packageRoot(), 'bin/pilot-discovery'), ['token', 'shop/cart'], {
    env: { ...process.env, SELF_SIGNED_CA_DIR: join(root, 'ca') },
  });
  writeFileSync(join(root, 'var/run/secrets/tokens/istio-token'), token);
  writeFileSync(join(root, 'var/run/secrets/istio/root-cert.pem'), caller.roots());
  writeFileSync(join(root, 'override.json'), JSON.stringify(override(ports.listener)));
  agent = Program.start('pilot-agent', {
    args: [
      ...['proxy', 'sidecar', '--discoveryAddress', at(grpc), '--controlPlaneAuthPolicy', 'NONE'],
      ...['--binaryPath', envoyBinary(), '--proxyAdminPort', String(admin), '--statusPort', String(status)],
      ...['--configPath', join(root, 'proxy'), '--runDir', join(root, 'run'), '--trace', join(root, 'agent.trace')],
      ...['--drainDuration', '1s', '--parentShutdownDuration', '2s', '--terminationDrainDuration', '200ms'],
      ...['--concurrency', '1'],
    ],
    env: {
      ...process.env,
      CA_ADDR: at(securePort),
      POD_NAME: 'cart-0',
      POD_NAMESPACE: 'shop',
      SERVICE_ACCOUNT: 'cart',
      INSTANCE_IP: '127.0.0.1',
      SECRET_TTL: '60s',
      SECRET_GRACE_PERIOD_RATIO: '0.97',
      SECRET_GRACE_PERIOD_RATIO_JITTER: '0.005',
      ENVOY_STATUS_PORT: '0',
      ENVOY_PROMETHEUS_PORT: '0',
      ISTIO_BOOTSTRAP_OVERRIDE: join(root, 'override.json'),
    },
    cwd: root,
  });
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const bearer = await caller.token({ namespace: 'shop', serviceAccount: 'client' });
  const chain = await requestCertificateChain(caller.client(ports.secure), { csr: createRequest(key, []), bearer });
  client = {
    cert: chain.slice(0, -1).join(''),
    key: key.export({ format: 'pem', type: 'pkcs8' }) as string,
    ca: chain.at(-1)!,
  };
  caller.close();
});

afterAll(async () => {
  listening?.destroy();
  for (const program of [agent, discovery]) {
    if (program === undefined) continue;
    process.kill(program.pid, 'SIGTERM');
    await program.exited;
  }
  rmSync(root, { recursive: true, force: true });
});

/** A port with mutual TLS, whose certificates are named as in the control plane's listeners. */
function override(port: number): object {
  const source = {
    api_config_source: {
      api_type: 'GRPC',
      transport_api_version: 'V3',
      set_node_on_first_message_only: true,
      grpc_services: [{ envoy_grpc: { cluster_name: 'sds-grpc' } }],
    },
    initial_fetch_timeout: '0s',
    resource_api_version: 'V3',
  };
  const type = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;
  const manager = {
    '@type': type('filters.network.http_connection_manager.v3.HttpConnectionManager'),
    stat_prefix: 'tls',
    route_config: {
      virtual_hosts: [
        {
          name: 'all',
          domains: ['*'],
          routes: [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'ok' } } }],
        },
      ],
    },
    http_filters: [
      { name: 'envoy.filters.http.router', typed_config: { '@type': type('filters.http.router.v3.Router') } },
    ],
  };
  const tls = {
    '@type': type('transport_sockets.tls.v3.DownstreamTlsContext'),
    require_client_certificate: true,
    common_tls_context: {
      tls_certificate_sds_secret_configs: [{ name: 'default', sds_config: source }],
      combined_validation_context: {
        default_validation_context: {},
        validation_context_sds_secret_config: { name: 'ROOTCA', sds_config: source },
      },
    },
  };
  return {
    static_resources: {
      listeners: [
        {
          name: 'tls',
          address: { socket_address: { address: '127.0.0.1', port_value: port } },
          filter_chains: [
            {
              filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager }],
              transport_socket: { name: 'envoy.transport_sockets.tls', typed_config: tls },
            },
          ],
        },
      ],
    },
  };
}

const tlsOptions = () => ({
  ...client,
  host: '127.0.0.1',
  port: ports.listener,
  checkServerIdentity: () => undefined,
});

/**
 * Sends a request.
 * @returns the serial number of the presented certificate, or the reason of the failure
 */
function requestSerial(agentOfClient: Agent | false): Promise<string | Error> {
  return new Promise((resolve) => {
    const sentRequest = request({ ...tlsOptions(), agent: agentOfClient, path: '/' }, (response) => {
      const { serialNumber } = (response.socket as TLSSocket).getPeerCertificate();
      response.resume();
      response.once('end', () =>
        resolve(response.statusCode === 200 ? serialNumber : new Error(`status ${response.statusCode}`)),
      );
    });
    sentRequest.once('error', resolve);
    sentRequest.end();
  });
}

/** The fields of the `/certs` response that this test uses. */
interface Certificates {
  readonly certificates: readonly { readonly cert_chain: readonly { readonly serial_number: string }[] }[];
}

function events(type: string): (TraceRecord & { kind: 'event' })[] {
  return readFileSync(join(root, 'agent.trace'), 'utf8')
    .split('\n')
    .flatMap((line) => {
      if (!line.includes(`"${type}"`)) return [];
      const record = JSON.parse(line) as TraceRecord;
      return record.kind === 'event' && record.event.type === type ? [record] : [];
    });
}

test(`Envoy serves ${rotations} consecutive certificates under load, and no request fails`, async () => {
  await eventually('the first answer', async () => typeof (await requestSerial(false)) === 'string', {
    hopeless: () => agent.exit && agent.lines.join('\n'),
  });
  // A connection that stays open during all rotations.
  listening = connect(tlsOptions());
  let isLost = false;
  listening.once('close', () => (isLost = true));
  const keepAliveAgent = new Agent({ keepAlive: true, maxSockets: 1 });
  const serials = new Set<string>();
  const failures: Error[] = [];
  let requests = 0;
  const deadline = performance.now() + limitMs;
  while (serials.size <= rotations && performance.now() < deadline) {
    for (const outcome of await Promise.all([requestSerial(false), requestSerial(keepAliveAgent)])) {
      requests++;
      if (typeof outcome === 'string') serials.add(outcome);
      else failures.push(outcome);
    }
  }
  keepAliveAgent.destroy();
  expect(failures).toEqual([]);
  expect(serials.size).toBeGreaterThan(rotations);
  expect(requests).toBeGreaterThan(100);
  expect(isLost).toBe(false);
  // Checks every copy in Envoy, not only the first one (istio#39985). The next certificate may arrive between the two requests.
  const admin = createAdminClient('127.0.0.1', ports.admin);
  await eventually('the certificate of a handshake is among those that Envoy says it has', async () => {
    const shaken = await requestSerial(false);
    const { certificates } = JSON.parse((await admin.get('/certs')).body) as Certificates;
    const serialNumbers = certificates.flatMap(({ cert_chain: chain }) => chain.map((one) => one.serial_number));
    return typeof shaken === 'string' && serialNumbers.includes(shaken.toLowerCase());
  });
  const current = events('secret.obtained').filter(({ event }) => event.name === 'default').length;
  expect(current).toBeGreaterThanOrEqual(rotations);
  expect(events('restart.decided')).toHaveLength(1);
  const times = events('secret.obtained').flatMap(({ t, event }) => {
    const acknowledgement = events('sds.acknowledged').find(
      (one) => one.event.name === 'default' && one.event.version === event.version,
    );
    return acknowledgement === undefined ? [] : [acknowledgement.t - t];
  });
  times.sort((one, other) => one - other);
  const median = times[Math.floor(times.length / 2)]!;
  console.info(
    `from obtained to Envoy's acknowledgement: median ${median.toFixed(1)} ms of ${times.length}; ${requests} requests`,
  );
  expect(median).toBeLessThan(200);
  const trace = readFileSync(join(root, 'agent.trace'), 'utf8');
  expect(trace).not.toContain('PRIVATE KEY');
  expect(agent.lines.join('\n')).not.toContain('PRIVATE KEY');
});
