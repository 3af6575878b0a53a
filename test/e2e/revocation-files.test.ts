/** A real Envoy that requests authorities and CRLs from the agent's SDS server: `caCrl` files of a MUTUAL server. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readCertificate } from '../../src/identity/certificate.ts';
import { type Issuer, issueLeaf, issueRevocationList, issueRoot } from '../../src/identity/issue.ts';
import { createAuthority } from '../certs/authority.ts';
import { httpListener, oneRoute } from '../harness/envoy-validation.ts';
import { eventually } from '../harness/eventually.ts';
import { givenSecrets, type StartedSecrets, secretsOf, stopSecrets } from '../harness/given-secrets.ts';
import { type RealEnvoy, startEnvoyWith } from '../networking/ads-envoy.ts';

const now = new Date(Math.floor(Date.now() / 1000) * 1000);
const hours = (count: number): Date => new Date(now.getTime() + count * 3_600_000);
const life = { notBefore: hours(-2), notAfter: hours(1_000) };
const directory = mkdtempSync(join(tmpdir(), 'chartpilot-crl-'));
const [caFile, listFile] = [join(directory, 'ca.pem'), join(directory, 'ca.crl')];
const name = `file-root-crl:${caFile}~${listFile}`;
const server = createAuthority();

function rootOf(commonName: string): Issuer {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    privateKey,
    certificate: readCertificate(issueRoot(privateKey, { organization: 'test', commonName }, life)),
  };
}

const root = rootOf('root');

function client(): { cert: string; key: string; serialNumber: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const leaf = readCertificate(issueLeaf(root, publicKey, { uris: [], dns: ['client.test'], ips: [] }, life));
  const key = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  return { cert: leaf.pem, key, serialNumber: leaf.serialNumber };
}

function list(number: number, ...revokedSerials: readonly string[]): string {
  const entries = revokedSerials.map((serialNumber) => ({ serialNumber, at: hours(-1) }));
  return issueRevocationList(root, { number, thisUpdate: hours(-1), nextUpdate: hours(900), revoked: entries });
}

function write(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

const [first, second] = [client(), client()];
let secrets: StartedSecrets;
let envoy: RealEnvoy;
let port = 0;

async function outcomeWith({ cert, key }: { cert: string; key: string }): Promise<string> {
  const options = { host: '127.0.0.1', port, servername: 'web.test', ca: server.certificate, cert, key, agent: false };
  return new Promise((resolve) => {
    request(options, (response) => {
      response.resume();
      resolve(String(response.statusCode));
    })
      .on('error', () => resolve('refused'))
      .end();
  });
}

const outcomesOfBoth = async (): Promise<string> => `${await outcomeWith(first)} ${await outcomeWith(second)}`;

beforeAll(async () => {
  write(caFile, root.certificate.pem);
  write(listFile, list(1, first.serialNumber));
  const { identity } = secretsOf({ env: {} });
  const socket = join(directory, 'socket');
  const files = {
    source: 'files' as const,
    reason: 'mounted',
    certificateDirectory: directory,
    rootDirectory: directory,
  };
  secrets = await givenSecrets({
    identity: { ...identity, settings: { ...identity.settings, ...files, socket } },
    env: {},
  });
  envoy = await startEnvoyWith(bootstrap(socket));
  await eventually('the listener is active', async () => {
    const address = /"port_value":\s*(\d+)/.exec(await envoy.admin('/listeners?format=json'))?.[1];
    port = Number(address ?? 0);
    return port > 0 && (await outcomeWith(second)) === '200';
  });
});

afterAll(async () => {
  await envoy?.stop();
  await stopSecrets();
  rmSync(directory, { recursive: true, force: true });
});

test('an unusable CRL file does not affect clients, and the next usable file applies', async () => {
  expect(await outcomesOfBoth()).toBe('refused 200');
  for (const invalidList of [
    'garbage',
    issueRevocationList(rootOf('another'), { number: 2, thisUpdate: hours(-1), nextUpdate: hours(9), revoked: [] }),
  ]) {
    const previousCount = secrets.events('secret.unavailable').length;
    write(listFile, invalidList);
    await eventually('it is reported', () => secrets.events('secret.unavailable').length > previousCount);
    expect(await outcomesOfBoth()).toBe('refused 200');
  }
  write(listFile, list(3, second.serialNumber));
  await eventually('the new list applies', async () => (await outcomesOfBoth()) === '200 refused');
});

function bootstrap(socket: string): object {
  const { certificate, privateKey } = server.issue(['web.test']);
  const protocol = {
    '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
    explicit_http_config: { http2_protocol_options: {} },
  };
  const endpoint = { endpoint: { address: { pipe: { path: socket } } } };
  const api = {
    api_type: 'GRPC',
    transport_api_version: 'V3',
    grpc_services: [{ envoy_grpc: { cluster_name: 'sds-grpc' } }],
  };
  const listener = httpListener(oneRoute({ match: { prefix: '/' }, direct_response: { status: 200 } })) as {
    filter_chains: object[];
  };
  const transport = {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext',
      require_client_certificate: true,
      common_tls_context: {
        tls_certificates: [
          { certificate_chain: { inline_string: certificate }, private_key: { inline_string: privateKey } },
        ],
        combined_validation_context: {
          default_validation_context: {},
          validation_context_sds_secret_config: {
            name,
            sds_config: { resource_api_version: 'V3', api_config_source: api },
          },
        },
      },
    },
  };
  return {
    node: { id: 'revocation', cluster: 'revocation' },
    static_resources: {
      clusters: [
        {
          name: 'sds-grpc',
          type: 'STATIC',
          typed_extension_protocol_options: { 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': protocol },
          load_assignment: { cluster_name: 'sds-grpc', endpoints: [{ lb_endpoints: [endpoint] }] },
        },
      ],
      listeners: [{ ...listener, filter_chains: [{ ...listener.filter_chains[0], transport_socket: transport }] }],
    },
  };
}
