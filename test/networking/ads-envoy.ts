/** Starts a real Envoy that accepts all configuration of one ADS server. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Proxy } from '../../src/model/node/proxy.ts';
import { envoyBinary } from '../fixtures/real-envoy.ts';
import { endWithRunner } from '../harness/runner-watch.ts';

export interface RealEnvoy {
  readonly pid: number;
  /** Response of the admin interface. */
  admin(path: string): Promise<string>;
  log(): string;
  stop(): Promise<void>;
}

const startLimitMs = 90_000;

type EnvoyNode = Pick<Proxy, 'id' | 'cluster'> & { readonly metadata?: object };

export interface RealEnvoyOptions {
  /** Use the incremental (delta) protocol. */
  readonly delta?: boolean;
  /** Path of an Envoy binary, if not the default. */
  readonly binary?: string;
  /** Additional command-line arguments. */
  readonly flags?: readonly string[];
}

/**
 * Returns when the admin interface responds. Envoy may not have received resources yet.
 *
 * @param ads port on loopback, or path of the ADS server's socket
 */
export function startRealEnvoy(
  ads: number | string,
  node: EnvoyNode,
  options: RealEnvoyOptions = {},
): Promise<RealEnvoy> {
  return startEnvoyWith(bootstrap(ads, node, options), options.binary, options.flags);
}

/** @param bootstrap bootstrap without an admin interface, which gets a separate port */
export async function startEnvoyWith(
  bootstrap: object,
  binary = envoyBinary(),
  moreFlags: readonly string[] = [],
): Promise<RealEnvoy> {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-accepts-'));
  const addressFile = join(folder, 'admin-address');
  const configFile = join(folder, 'bootstrap.json');
  const admin = { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } };
  writeFileSync(configFile, JSON.stringify({ ...bootstrap, admin }));
  // Without hot restart, Envoy shares nothing with other Envoys of the host and leaves nothing in /dev/shm.
  const flags = ['--disable-hot-restart', '--concurrency', '1', '--log-level', 'warning', ...moreFlags];
  const args = ['-c', configFile, '--admin-address-path', addressFile, ...flags];
  const child = spawn(binary, args, { detached: true });
  endWithRunner(child);
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk.toString();
  });
  child.stdout.resume();
  const stop = async (): Promise<void> => {
    await waitForExit(child);
    rmSync(folder, { recursive: true, force: true });
  };
  const deadline = performance.now() + startLimitMs;
  while (!existsSync(addressFile) || readFileSync(addressFile, 'utf8') === '') {
    if (child.exitCode !== null || performance.now() > deadline) {
      await stop();
      throw new Error(`Envoy did not start:\n${log}`);
    }
    await sleep(20);
  }
  const address = readFileSync(addressFile, 'utf8');
  return {
    pid: child.pid!,
    admin: async (path) => (await fetch(`http://${address}${path}`)).text(),
    log: () => log,
    stop,
  };
}

async function waitForExit(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await exit;
}

function bootstrap(
  ads: number | string,
  { id, cluster, metadata = {} }: EnvoyNode,
  { delta = false }: RealEnvoyOptions,
): object {
  const source = { ads: {}, resource_api_version: 'V3', initial_fetch_timeout: '0s' };
  return {
    node: { id, cluster, metadata },
    dynamic_resources: {
      ads_config: {
        api_type: delta ? 'DELTA_GRPC' : 'GRPC',
        transport_api_version: 'V3',
        grpc_services: [{ envoy_grpc: { cluster_name: 'ads' } }],
      },
      cds_config: source,
      lds_config: source,
    },
    static_resources: {
      // `sds-grpc` replaces the agent, which serves the workload's certificates.
      clusters: ['ads', 'sds-grpc'].map((name) => grpcCluster(name, ads)),
    },
  };
}

function grpcCluster(name: string, server: number | string): object {
  const address =
    typeof server === 'string'
      ? { pipe: { path: server } }
      : { socket_address: { address: '127.0.0.1', port_value: server } };
  return {
    name,
    type: 'STATIC',
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
  };
}
