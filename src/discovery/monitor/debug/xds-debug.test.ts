import { fromBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { givenPlane, sentAt } from '../../../../test/fixtures/given-plane.ts';
import { DiscoveryResponseSchema } from '../../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { ClientConfigSchema, ConfigStatus } from '../../../gen/envoy/service/status/v3/csds_pb.ts';
import { clusterType, endpointType, routeType } from '../../../networking/index.ts';
import type { DebugAccess } from './debug-endpoints.ts';
import { configDumpType, debugType, syncStatusType, XdsDebug } from './xds-debug.ts';

const mesh = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.example.com]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: [{address: 10.0.0.1}]
`;
const access: DebugAccess = {
  token: { hasToken: () => false },
  localNeedsToken: false,
  checksNamespace: true,
  rootNamespace: () => 'istio-system',
  allowedNamespaces: [],
};

function debug(): XdsDebug {
  const plane = givenPlane(mesh);
  const identity = {
    id: 'sidecar~10.9.9.9~web-0.shop~shop.svc.cluster.local',
    cluster: 'web',
    metadata: { NAMESPACE: 'shop', CLUSTER_ID: 'c1', ISTIO_VERSION: '1.30.0' },
  };
  plane.connect(identity, [
    { typeUrl: clusterType, nonceSent: 'n1', nonceAcked: 'n1', versionSent: 'v1', sentAt },
    { typeUrl: endpointType, nonceSent: 'n2', nonceAcked: 'n1', versionSent: 'v1', sentAt },
    { typeUrl: routeType, nonceSent: 'n3', lastError: 'no', versionSent: 'v1', sentAt },
  ]);
  return new XdsDebug({ sources: plane, access });
}

/** Sends a request with the identity of a namespace, or without one. */
async function request(typeUrl: string, names: string[], namespace?: string) {
  const identities = namespace === undefined ? [] : [`spiffe://cluster.local/ns/${namespace}/sa/default`];
  const reply = await debug().respond({ typeUrl, names, identities });
  if (reply === undefined) throw new Error(`${typeUrl} is not answered`);
  return reply;
}

/** Decodes the resources of a successful response. */
async function resources(typeUrl: string, names: string[], namespace = 'istio-system') {
  const reply = await request(typeUrl, names, namespace);
  if ('code' in reply) throw new Error(reply.reason);
  return reply.resources.map(({ name, sotwFrame }) => {
    // Field 2 of a DiscoveryResponse.
    const [anyResource] = fromBinary(DiscoveryResponseSchema, sotwFrame).resources;
    return { name, typeUrl: anyResource!.typeUrl, value: anyResource!.value };
  });
}

describe('debug pages over xDS', () => {
  it('return one resource that contains the page', async () => {
    const command = 'config_dump?proxyID=web-0.shop&types=cds';
    const [resource, ...otherResources] = await resources(debugType, [command]);
    expect(otherResources).toEqual([]);
    expect(resource).toMatchObject({ typeUrl: debugType, name: command });
    expect(JSON.parse(Buffer.from(resource!.value).toString())).toMatchObject({
      configs: [{ '@type': 'type.googleapis.com/envoy.admin.v3.ClustersConfigDump' }],
    });
  });

  it.each([
    [[], 'exactly one'],
    [['syncz', 'adsz'], 'exactly one'],
    [['nothing'], 'unknown debug page "nothing"; known pages: proxyz, adsz'],
    [['//'], 'unknown debug page "//"'],
    [['edsz'], 'must provide a proxyID'],
  ])('reject the names %j with an error', async (names, message) => {
    expect(await request(debugType, names, 'istio-system')).toEqual({
      code: 'INVALID_ARGUMENT',
      reason: expect.stringContaining(message),
    });
  });

  it('return a resource even if the proxy is not connected, so that tools query the next replica', async () => {
    const [resource] = await resources(debugType, ['config_dump?proxyID=elsewhere.shop']);
    // The sentence that istioctl matches (istioctl/pkg/multixds).
    expect(Buffer.from(resource!.value).toString()).toContain(
      'Proxy not connected to this Pilot instance. It may be connected to another instance.',
    );
  });

  it('return an empty configuration, not an error, for a proxy of another replica, so that tools query that replica', async () => {
    expect(await request(configDumpType, ['elsewhere.shop'], 'istio-system')).toMatchObject({ resources: [] });
  });

  it.each(['list', '/list', '//list'])('list all page names for %s', async (name) => {
    const [resource] = await resources(debugType, [name]);
    expect(JSON.parse(Buffer.from(resource!.value).toString())).toContain('syncz');
  });

  it('report the state of each type of each proxy', async () => {
    const [resource] = await resources(syncStatusType, []);
    const { node, genericXdsConfigs } = fromBinary(ClientConfigSchema, resource!.value);
    expect(node).toMatchObject({
      id: 'web-0.shop',
      metadata: { CLUSTER_ID: 'c1', NAMESPACE: 'shop', ISTIO_VERSION: '1.30.0' },
    });
    const status = Object.fromEntries(genericXdsConfigs.map(({ typeUrl, configStatus }) => [typeUrl, configStatus]));
    expect(status).toMatchObject({
      [clusterType]: ConfigStatus.SYNCED,
      [endpointType]: ConfigStatus.STALE,
      [routeType]: ConfigStatus.ERROR,
      'type.googleapis.com/envoy.config.listener.v3.Listener': ConfigStatus.NOT_SENT,
    });
    expect(await resources(syncStatusType, ['other.shop'])).toEqual([]);
  });

  it('dump the configuration of a proxy by section', async () => {
    const sections = await resources(configDumpType, ['web-0.shop']);
    expect(sections.map(({ typeUrl }) => typeUrl.replace(/.*\./, ''))).toContain('EndpointsConfigDump');
    expect(await request(configDumpType, [], 'istio-system')).toMatchObject({ reason: expect.stringContaining('one') });
  });

  it("are limited to proxies of the caller's namespace", async () => {
    expect(await request(configDumpType, ['web-0.shop'], 'shop')).toHaveProperty('resources');
    expect(await request(configDumpType, ['web-0.shop'], 'other')).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await request(syncStatusType, [], 'shop')).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await request(debugType, ['configz'], 'shop')).toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('reject unauthenticated clients, and ignore other resource types', async () => {
    expect(await request(debugType, ['syncz'])).toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(debug().respond({ typeUrl: clusterType, names: [], identities: [] })).toBeUndefined();
  });
});
