import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createActor, type StateFrom, waitFor } from 'xstate';
import type { grpcBootstrapMachine } from '../../../machines/agent/bootstrap/grpc-bootstrap.machine.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import type { ProxyOptions } from '../options/options.ts';
import { resolveProxyOptions } from '../options/proxy-options.ts';
import { servesProxyless } from '../options/proxyless.ts';
import { grpcBootstrapWithEffects } from './grpc-bootstrap.effects.ts';
import { grpcBootstrap, grpcBootstrapPath } from './grpc-bootstrap.ts';

const pod = {
  ISTIO_META_GENERATOR: 'grpc',
  DISABLE_ENVOY: 'true',
  POD_NAME: 'web-0',
  POD_NAMESPACE: 'shop',
  INSTANCE_IP: '10.1.2.3',
  OUTPUT_CERTS: '/certs',
};

const optionsOf = (env: NodeJS.ProcessEnv = {}, flags: Record<string, string> = {}): ProxyOptions =>
  resolveProxyOptions({
    role: 'sidecar',
    flags: { configPath: '/proxy', discoveryAddress: 'istiod:15012', ...flags },
    env: { ...pod, ...env },
    // The token of the pod is assumed to exist.
    assumesMounts: true,
  });

// biome-ignore lint/suspicious/noExplicitAny: JSON as a gRPC library reads it.
const fileOf = (options: ProxyOptions): any => {
  const { bootstrap } = grpcBootstrap(options, { hasCredentialServer: false });
  return JSON.parse(JSON.stringify(bootstrap));
};

describe('gRPC bootstrap file', () => {
  it("names the agent's socket, the node, the certificate files and the server listener", () => {
    const { node, ...rest } = fileOf(optionsOf());
    expect(rest).toEqual({
      xds_servers: [
        { server_uri: 'unix:///proxy/XDS', channel_creds: [{ type: 'insecure' }], server_features: ['xds_v3'] },
      ],
      certificate_providers: {
        default: {
          plugin_name: 'file_watcher',
          config: {
            certificate_file: '/certs/cert-chain.pem',
            private_key_file: '/certs/key.pem',
            ca_certificate_file: '/certs/root-cert.pem',
            refresh_interval: '900s',
          },
        },
      },
      server_listener_resource_name_template: 'xds.istio.io/grpc/lds/inbound/%s',
    });
    expect(node).toMatchObject({
      id: 'sidecar~10.1.2.3~web-0.shop~shop.svc.cluster.local',
      metadata: { GENERATOR: 'grpc', NAMESPACE: 'shop', WORKLOAD_CERTIFICATES: 'true' },
    });
  });

  it('has a locality even if the locality of the proxy is unknown, because gRPC for Node.js rejects a file without one', () => {
    expect(fileOf(optionsOf()).node.locality).toEqual({});
    const env = { ISTIO_METAJSON_LABELS: '{"istio-locality":"eu/eu-1/a"}' };
    expect(fileOf(optionsOf(env)).node.locality).toEqual({ region: 'eu', zone: 'eu-1', sub_zone: 'a' });
  });

  it('names no certificate files if none are written, and the node metadata reports this', () => {
    const file = fileOf(optionsOf({ OUTPUT_CERTS: '' }));
    expect(file.certificate_providers).toBeUndefined();
    expect(file.node.metadata.WORKLOAD_CERTIFICATES).toBe('false');
  });

  it.each([
    ['24h', '0.5', '900s'],
    ['1h', '0.5', '441s'],
    ['40s', '0.9', '8s'],
    ['1s', '0.5', '1s'],
  ])(
    'refreshes the files of a certificate of %s, renewed with %s of its lifetime left, four times before it expires',
    (ttl, ratio, interval) => {
      const options = optionsOf({ SECRET_TTL: ttl, SECRET_GRACE_PERIOD_RATIO: ratio });
      expect(fileOf(options).certificate_providers.default.config.refresh_interval).toBe(interval);
    },
  );

  it('is written only if the environment or proxyMetadata sets GENERATOR to grpc', () => {
    expect(servesProxyless(optionsOf())).toBe(true);
    expect(servesProxyless(optionsOf({ ISTIO_META_GENERATOR: undefined }))).toBe(false);
    expect(servesProxyless(optionsOf({ ISTIO_META_GENERATOR: 'other' }))).toBe(false);
    const proxyMetadata = 'proxyMetadata: { ISTIO_META_GENERATOR: grpc }';
    expect(servesProxyless(optionsOf({ ISTIO_META_GENERATOR: undefined, PROXY_CONFIG: proxyMetadata }))).toBe(true);
  });

  it('is at the path of GRPC_XDS_BOOTSTRAP, or in the directory of generated files by default', () => {
    expect(grpcBootstrapPath(optionsOf())).toBe('/proxy/grpc-bootstrap.json');
    expect(grpcBootstrapPath(optionsOf({ GRPC_XDS_BOOTSTRAP: '/etc/g.json' }))).toBe('/etc/g.json');
  });
});

/** @returns the snapshot after the file was written or the first attempt failed */
async function writeBootstrap(options: ProxyOptions): Promise<StateFrom<typeof grpcBootstrapMachine>> {
  const machine = grpcBootstrapWithEffects({ options, hasCredentialServer: false, log: silentLogger });
  const failures: string[] = [];
  const actor = createActor(
    machine.provide({
      actions: { notifyStatus: () => {}, reportFailed: (_, { reason }) => void failures.push(reason) },
    }),
  ).start();
  onTestFinished(() => void actor.stop());
  const snapshot = await waitFor(actor, (state) => !state.matches('writing'), { timeout: 90_000 });
  if (failures.length > 0) throw new Error(failures.join());
  return snapshot;
}

describe('writing of the gRPC bootstrap file', () => {
  const folder = (): string => {
    const temporary = mkdtempSync(join(tmpdir(), 'grpc-bootstrap-'));
    onTestFinished(() => rmSync(temporary, { recursive: true }));
    return temporary;
  };

  it('creates a private directory and a file that every user of the pod can read', async () => {
    const path = join(folder(), 'new/grpc-bootstrap.json');
    const options = optionsOf({ GRPC_XDS_BOOTSTRAP: path });
    expect((await writeBootstrap(options)).value).toBe('written');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(fileOf(options));
    expect(statSync(path).mode & 0o777).toBe(0o644 & ~process.umask());
    expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700);
  });

  it('replaces an existing file atomically and leaves no temporary file', async () => {
    const temporary = folder();
    const path = join(temporary, 'g.json');
    writeFileSync(path, 'half a f');
    const previousInode = statSync(path).ino;
    await writeBootstrap(optionsOf({ GRPC_XDS_BOOTSTRAP: path }));
    expect(statSync(path).ino).not.toBe(previousInode);
    expect(readdirSync(temporary)).toEqual(['g.json']);
  });

  it('reports path and reason if it fails', async () => {
    const path = join(folder(), 'g.json');
    mkdirSync(path);
    await expect(writeBootstrap(optionsOf({ GRPC_XDS_BOOTSTRAP: path }))).rejects.toThrow(
      new RegExp(`^${path}: .*EISDIR`),
    );
  });
});
