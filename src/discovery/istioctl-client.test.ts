/**
 * Sends the requests of istioctl (`proxy-status`, `x internal-debug`, `version`) in the format of its client: `istioctl/pkg/xds/client.go` and
 * `pkg/adsc/adsc.go` of Istio.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { credentials, Metadata, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { typeUrls } from '../../test/ads-client.ts';
import { ControlPlane, sidecar, stopControlPlanes } from '../../test/harness/control-plane.ts';
import { ClientConfigSchema } from '../gen/envoy/service/status/v3/csds_pb.ts';
import { issueToken, localTokenFile, localTokenKey } from './xds/access/local-tokens.ts';

const debug = 'istio.io/debug';
const syncz = 'istio.io/debug/syncz';

let root: string;
let plane: ControlPlane;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-istioctl-'));
  plane = ControlPlane.starting({ secureGRPCAddr: '127.0.0.1:0' }, undefined, {
    SELF_SIGNED_CA_DIR: root,
    POD_NAME: 'istiod-7d9c',
  });
  await plane.ready();
  await plane.subscribe();
});

afterEach(async () => {
  await stopControlPlanes();
  rmSync(root, { recursive: true });
});

/** Opens a stream with a token of service account `default`, like a tool, and sends a request. */
async function istioctl(namespace: string, typeUrl: string, ...resourceNames: string[]) {
  const order = { namespace, serviceAccount: 'default', audience: 'istio-ca', ttlSeconds: 3_600 };
  const token = await issueToken(localTokenKey(join(root, localTokenFile)), order, new Date());
  // istioctl does not verify the control plane's certificate either.
  const transport = credentials.createSsl(null, null, null, { rejectUnauthorized: false });
  const perCall = credentials.createFromMetadataGenerator((_, callback) => {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${token}`);
    callback(null, metadata);
  });
  const callCredentials = credentials.combineChannelCredentials(transport, perCall);
  const stream = plane.client(plane.port('ads.listening'), callCredentials).sotw();
  stream.send(requestOf(namespace, typeUrl, resourceNames));
  return stream;
}

/** On a host without a private address, the node ID contains none. The nonce is the time of day. */
function requestOf(namespace: string, typeUrl: string, resourceNames: string[]) {
  return {
    node: {
      id: `sidecar~~test-1.${namespace}~${namespace}.svc.cluster.local`,
      metadata: {
        GENERATOR: 'event',
        SERVICE_ACCOUNT: 'default',
        NAMESPACE: namespace,
        ISTIO_VERSION: '65536.65536.65536',
      },
    },
    typeUrl,
    resourceNames,
    responseNonce: '2026-11-29 19:00:45.123456789 +0000 UTC m=+0.067890123',
  };
}

async function pageOf(namespace: string, command: string): Promise<string> {
  const { resources } = await (await istioctl(namespace, debug, command)).next();
  expect(resources.map(({ typeUrl }) => typeUrl)).toEqual([debug]);
  return Buffer.from(resources[0]!.value).toString();
}

it('istioctl proxy-status shows the state and version of each proxy, and its control plane pod', async () => {
  const { resources, controlPlane } = await (await istioctl('istio-system', syncz)).next();
  const configs = resources.map(({ value }) => fromBinary(ClientConfigSchema, value));
  expect(configs.map(({ node }) => node)).toMatchObject([{ id: 'web-0.shop', metadata: { ISTIO_VERSION: '1.30.0' } }]);
  expect(JSON.parse(controlPlane!.identifier)).toEqual({
    Component: 'istiod',
    ID: 'istiod-7d9c',
    Info: { version: 'test' },
  });
});

it('istioctl proxy-status lists 300 proxies within two seconds', async () => {
  const client = plane.client('ads.listening');
  for (let number = 1; number < 300; number++) {
    const stream = client.sotw();
    stream.send({ node: { ...sidecar, id: sidecar.id.replace('web-0', `web-${number}`) }, typeUrl: typeUrls.CDS });
    await stream.next();
  }
  const startedAt = performance.now();
  const { resources } = await (await istioctl('istio-system', syncz)).next();
  expect(resources).toHaveLength(300);
  expect(performance.now() - startedAt).toBeLessThan(2_000);
});

it('istioctl internal-debug shows the pages of the debug port', async () => {
  expect(JSON.parse(await pageOf('istio-system', 'syncz'))).toMatchObject([{ proxy: 'web-0.shop' }]);
  expect(JSON.parse(await pageOf('istio-system', 'connections'))).toMatchObject({ totalClients: 1 });
  expect(JSON.parse(await pageOf('istio-system', 'configz'))).toMatchObject([{ kind: 'ServiceEntry' }]);
  const dump = JSON.parse(await pageOf('istio-system', `config_dump?proxyID=${sidecar.id.split('~')[2]}`));
  expect(dump.configs.length).toBeGreaterThan(3);
});

it("pages, statuses and metrics do not count a tool's stream as a proxy", async () => {
  const stream = await istioctl('istio-system', syncz);
  await stream.next();
  expect((await plane.get('/debug/connections')).json()).toMatchObject({ totalClients: 1 });
  expect((await plane.get('/debug/adsz')).json()).toMatchObject({ totalClients: 1 });
  expect((await plane.get('/debug/syncz')).json()).toHaveLength(1);
  expect((await plane.get('/debug/proxyz')).text).not.toContain('test-1.istio-system');
  const connectedLines = (await plane.get('/metrics')).text.split('\n').filter((line) => line.startsWith('pilot_xds{'));
  expect(connectedLines).toEqual([expect.stringMatching(/^pilot_xds\{version="1\.30\.0"\} 1$/)]);
});

it('a tool from another namespace can read only its own proxies', async () => {
  expect(JSON.parse(await pageOf('shop', 'config_dump?proxyID=web-0.shop'))).toHaveProperty('configs');
  for (const [namespace, typeUrl, ...names] of [
    ['other', debug, 'config_dump?proxyID=web-0.shop'],
    ['shop', debug, 'configz'],
    ['shop', syncz],
  ] as const) {
    const endStatus = await (await istioctl(namespace, typeUrl, ...names)).ended;
    expect(endStatus).toMatchObject({ code: status.INVALID_ARGUMENT, details: expect.stringContaining('forbidden') });
  }
});

it('a tool without identity is rejected, and tools receive no proxy configuration', async () => {
  const plaintext = plane.client('ads.listening').sotw();
  plaintext.send(requestOf('istio-system', syncz, []));
  expect((await plaintext.ended).code).toBe(status.UNAUTHENTICATED);
  const stream = await istioctl('istio-system', 'type.googleapis.com/envoy.config.cluster.v3.Cluster');
  stream.send({ typeUrl: debug, resourceNames: ['list'] });
  expect((await stream.next()).typeUrl).toBe(debug);
});

it.each(['//version', '/debug//syncz', '//debug/syncz'])('the debug port responds to the path %s', async (path) => {
  expect(await plane.get(path)).toMatchObject({ status: 200 });
});
