/** Tests warnings about missing credentials, and about patches without effect, at connected proxies (issue 36, A4). */
import { describe, expect, it } from 'vitest';
import { type GivenPlane, givenPlane } from '../../../../test/fixtures/given-plane.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { clusterType, listenerType, routeType } from '../../../networking/index.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import type { CredentialState } from '../../push/mesh-resources.ts';
import type { ServedProxy } from './find-diagnostics.ts';
import { diagnosticsOf } from './push-status.ts';
import { objectWarnings } from './status-warnings.ts';

const gateway = (namespace: string, credential: string): string => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: web, namespace: ${namespace}}
spec: {selector: {istio: edge}, servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: [web.test], tls: {mode: SIMPLE, credentialName: ${credential}}}]}
---`;
const secret = (namespace: string, name: string): string => `
apiVersion: v1
kind: Secret
metadata: {name: ${name}, namespace: ${namespace}}
stringData: {key: ""}
---`;
const grant = (to: string): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: ${to}, namespace: keys}
spec: {from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: ${to}}], to: [{group: "", kind: Secret}]}
---`;

function connectGateway(plane: GivenPlane, name = 'edge'): void {
  plane.connect(
    {
      ...{ id: `router~10.0.0.9~${name}.edge~edge.svc.cluster.local`, cluster: 'edge' },
      metadata: { NAMESPACE: 'edge', LABELS: { istio: name } },
      verifiedIdentity: 'spiffe://cluster.local/ns/edge/sa/edge',
    },
    [],
  );
}

function connectedPlane(yaml: string): GivenPlane {
  const plane = givenPlane(yaml);
  connectGateway(plane);
  return plane;
}

/** Connected proxies for which credentials have this state. */
function proxiesReading(plane: GivenPlane, credentialState: CredentialState): ServedProxy[] {
  return [...plane.resources.nodes].map(({ proxy, shape, context }) => ({
    ...{ proxy, shape, context },
    credentialReading: () => credentialState,
  }));
}

/** Status texts, as if all objects were in a cluster. */
function statusTexts(plane: GivenPlane, proxies: Iterable<ServedProxy>, isOnlyReplica = true): string[] {
  const objectsByKey = { get: (key: string) => ({ kind: key.slice(0, key.indexOf('/')), generation: 1 }) } as never;
  const warnings = runToEnd(
    objectWarnings(diagnosticsOf(plane.state, proxies), { byKey: objectsByKey }, isOnlyReplica),
  );
  return [...warnings].map(([key, { reason, text }]) => `${key} ${reason}: ${text}`);
}

const codesOf = (plane: GivenPlane, proxies: Iterable<ServedProxy>): string[] =>
  Object.values(diagnosticsOf(plane.state, proxies).pilot_config_warnings!).map(({ code }) => code!);

describe('the warning CREDENTIAL_NOT_FOUND', () => {
  it('is in the status of a Gateway whose namespace lacks the Secret', () => {
    const plane = connectedPlane(gateway('edge', 'absent'));
    expect(statusTexts(plane, plane.resources.nodes)).toEqual([
      expect.stringMatching(
        /^Gateway\/edge\/web CredentialNotFound: spec\.servers\[0\]\.tls\.credentialName: .*Secret edge\/absent/,
      ),
    ]);
  });

  it.each(['web', 'keys/web'])('does not reveal to a Gateway of another namespace whether Secret %s exists', (name) => {
    const granted = grant('edge');
    const withoutSecrets = connectedPlane(gateway('tenant', name) + granted);
    const present = connectedPlane(gateway('tenant', name) + granted + secret('edge', 'web') + secret('keys', 'web'));
    expect(codesOf(withoutSecrets, withoutSecrets.resources.nodes)).toEqual(['CREDENTIAL_NOT_FOUND']);
    // Invalid content is not revealed either.
    expect(diagnosticsOf(present.state, present.resources.nodes).pilot_sds_certificate_errors_total).not.toEqual({});
    expect(statusTexts(withoutSecrets, withoutSecrets.resources.nodes)).toEqual([]);
    expect(statusTexts(present, present.resources.nodes)).toEqual([]);
  });

  it('is in the status of a Gateway in another namespace that has a grant for the Secret', () => {
    const plane = connectedPlane(gateway('tenant', 'keys/web') + grant('edge') + grant('tenant'));
    expect(statusTexts(plane, plane.resources.nodes)).toEqual([expect.stringContaining('Secret keys/web')]);
  });

  it('is not reported for a Secret of another namespace without a grant, even if it does not exist', () => {
    const plane = connectedPlane(gateway('edge', 'keys/web'));
    const present = connectedPlane(gateway('edge', 'keys/web') + secret('keys', 'web'));
    const texts = statusTexts(plane, plane.resources.nodes);
    expect(texts).toEqual([expect.stringMatching(/^Gateway\/edge\/web CredentialNotServed: .*ReferenceGrant/)]);
    expect(statusTexts(present, present.resources.nodes)).toEqual(texts);
  });

  it.each(['unread', 'present'] as const)(
    'is not reported for a Secret that is %s but not in the push context',
    (credentialState) => {
      const plane = connectedPlane(gateway('edge', 'absent'));
      expect(statusTexts(plane, proxiesReading(plane, credentialState))).toEqual([]);
      expect(codesOf(plane, proxiesReading(plane, 'absent'))).toEqual(['CREDENTIAL_NOT_FOUND']);
    },
  );

  it('is not reported for a Secret above a size limit, which has its own status', () => {
    const plane = connectedPlane(gateway('edge', 'large'));
    expect(statusTexts(plane, proxiesReading(plane, 'refused'))).toEqual([
      expect.stringMatching(/^Gateway\/edge\/web CredentialNotServed: .*exceeds a limit/),
    ]);
  });

  it('is replaced by a permission warning if the client must not access the Secret', () => {
    const plane = connectedPlane(gateway('edge', 'absent'));
    expect(codesOf(plane, proxiesReading(plane, 'denied'))).toEqual([]);
    expect(statusTexts(plane, proxiesReading(plane, 'denied'))).toEqual([
      expect.stringMatching(/^Gateway\/edge\/web CredentialNotServed: .*list Secrets in namespace edge/),
    ]);
  });
});

describe('the warning PATCH_NOT_APPLIED', () => {
  const filter = (port: number, match = ''): string => `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: patch, namespace: edge}
spec:
  configPatches:
  - applyTo: LISTENER
    match: {context: GATEWAY, listener: {portNumber: ${port}}${match}}
    patch: {operation: MERGE, value: {per_connection_buffer_limit_bytes: 4096}}
---`;
  const http = (name: string, port: number): string => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: ${name}, namespace: edge}
spec: {selector: {istio: ${name}}, servers: [{port: {number: ${port}, name: http, protocol: HTTP}, hosts: ["*.test"]}]}
---`;
  const serve = (plane: GivenPlane): void => {
    for (const node of plane.resources.nodes) node.get(listenerType, '*');
  };

  it('is reported after a proxy that the patch selects is served', () => {
    const plane = connectedPlane(http('edge', 8080) + filter(9999));
    expect(codesOf(plane, plane.resources.nodes)).toEqual([]);
    serve(plane);
    expect(statusTexts(plane, plane.resources.nodes)).toEqual([
      expect.stringMatching(
        /^EnvoyFilter\/edge\/patch PatchNotApplied: spec\.configPatches\[0\]: .* 1 connected proxy /,
      ),
    ]);
  });

  it('is not reported while the patch applies to one of the selected proxies', () => {
    const plane = connectedPlane(http('edge', 8080) + http('other', 9090) + filter(9090));
    connectGateway(plane, 'other');
    serve(plane);
    expect(codesOf(plane, plane.resources.nodes)).toEqual([]);
  });

  it('is not reported while a selected proxy is served from an older push context', () => {
    const plane = connectedPlane(http('edge', 8080) + filter(9999));
    serve(plane);
    expect(codesOf(plane, plane.resources.nodes)).toEqual(['PATCH_NOT_APPLIED']);
    const olderContext = Object.create(plane.state.context!) as PushContext;
    const outdatedProxies = [...plane.resources.nodes].map(({ proxy, shape }) => ({
      proxy,
      shape,
      context: olderContext,
    }));
    expect(codesOf(plane, outdatedProxies)).toEqual([]);
  });

  it('is not reported if the patch selects no connected proxy', () => {
    const plane = connectedPlane(http('edge', 8080) + filter(9999, ', proxy: {metadata: {zone: a}}'));
    serve(plane);
    expect(codesOf(plane, plane.resources.nodes)).toEqual([]);
  });

  it('is not in the status while another replica can have applied the patch', () => {
    const plane = connectedPlane(http('edge', 8080) + filter(9999));
    serve(plane);
    expect(statusTexts(plane, plane.resources.nodes, false)).toEqual([]);
    expect(codesOf(plane, plane.resources.nodes)).toEqual(['PATCH_NOT_APPLIED']);
  });
});

describe('the warning GRPC_NOT_SUPPORTED', () => {
  const host = 'echo.shop.svc.cluster.local';
  const cluster = `outbound|7070||${host}`;
  const server = 'xds.istio.io/grpc/lds/inbound/10.0.0.7:7070';
  const object = (kind: string, spec: object, group = 'networking'): string =>
    `${JSON.stringify({ apiVersion: `${group}.istio.io/v1`, kind, metadata: { name: 'echo', namespace: 'shop' }, spec })}\n---\n`;
  const entry = object('ServiceEntry', {
    ...{ hosts: [host], location: 'MESH_INTERNAL', resolution: 'STATIC', endpoints: [{ address: '10.0.0.7' }] },
    ports: [{ number: 7070, name: 'grpc', protocol: 'GRPC' }],
  });
  const http = (extraFields: object): string =>
    object('VirtualService', { hosts: [host], http: [{ route: [{ destination: { host } }], ...extraFields }] });
  const rule = (trafficPolicy: object): string => object('DestinationRule', { host, trafficPolicy });

  /** @param isGrpc whether the client is proxyless; otherwise a sidecar requests the same resources */
  function planeRequesting(yaml: string, names: Readonly<Record<string, string>>, isGrpc = true): GivenPlane {
    const plane = givenPlane(entry + yaml);
    const id = 'sidecar~10.0.0.7~web.shop~shop.svc.cluster.local';
    plane.connect({ id, cluster: 'web', metadata: { NAMESPACE: 'shop', ...(isGrpc && { GENERATOR: 'grpc' }) } }, []);
    for (const node of plane.resources.nodes)
      for (const [typeUrl, name] of Object.entries(names)) node.get(typeUrl, [name]);
    return plane;
  }

  it.each<[string, string, Record<string, string>, string]>([
    [
      'VirtualService',
      http({ mirror: { host }, rewrite: { authority: 'other' } }),
      { [routeType]: cluster },
      'VirtualService/shop/echo GrpcNotSupported: spec\\.http\\[0\\]: .*mirroring is ignored; rewrite of the authority is ignored',
    ],
    [
      'DestinationRule',
      rule({ loadBalancer: { simple: 'RANDOM' }, outlierDetection: { interval: '1s' } }),
      { [clusterType]: cluster },
      'DestinationRule/shop/echo GrpcNotSupported: spec: .*RANDOM is replaced by ROUND_ROBIN; outlierDetection is ignored',
    ],
    [
      'AuthorizationPolicy',
      object('AuthorizationPolicy', { action: 'AUDIT', rules: [{}] }, 'security'),
      { [listenerType]: server },
      'AuthorizationPolicy/shop/echo GrpcNotSupported: spec: .*action AUDIT is ignored',
    ],
    [
      'RequestAuthentication',
      object('RequestAuthentication', { jwtRules: [{ issuer: 'a', jwks: '{"keys":[]}' }] }, 'security'),
      { [listenerType]: server },
      'RequestAuthentication/shop/echo GrpcNotSupported: spec: .*no effect on gRPC servers',
    ],
  ])(
    'is in the status of a %s while a connected proxyless client ignores a part of that object',
    (_, yaml, names, text) => {
      const plane = planeRequesting(yaml, names);
      expect(statusTexts(plane, plane.resources.nodes, false)).toEqual([expect.stringMatching(`^${text}`)]);
      expect(statusTexts(plane, [])).toEqual([]);
    },
  );

  it('is not reported for sidecars or for resources that the client does not request', () => {
    const yaml = http({ mirror: { host } });
    const sidecar = planeRequesting(yaml, { [routeType]: cluster }, false);
    expect(codesOf(sidecar, sidecar.resources.nodes)).toEqual([]);
    const other = planeRequesting(yaml, { [clusterType]: cluster });
    expect(codesOf(other, other.resources.nodes)).toEqual([]);
  });

  it('is not reported after the client unsubscribes', () => {
    const plane = planeRequesting(http({ mirror: { host } }), { [routeType]: cluster });
    let names = [cluster];
    for (const node of plane.resources.nodes) node.provideWatches(() => ({ [routeType]: { names } }) as never);
    expect(codesOf(plane, plane.resources.nodes)).toEqual(['GRPC_NOT_SUPPORTED']);
    names = [];
    expect(codesOf(plane, plane.resources.nodes)).toEqual([]);
  });

  it('is limited if a client requests many resources, and the limit is reported', () => {
    const route = (index: number) => ({ route: [{ destination: { host } }], mirror: { host }, name: `r${index}` });
    const manyRoutes = object('VirtualService', {
      hosts: [host],
      http: Array.from({ length: 40 }, (_, index) => ({ match: [{ uri: { exact: `/${index}` } }], ...route(index) })),
    });
    const plane = planeRequesting(manyRoutes, { [routeType]: cluster });
    const [node] = plane.resources.nodes;
    expect(node!.grpcLimitations).toHaveLength(32);
    expect(node!.limitations.join()).toMatch(/; and at least 27 more$/);
    node!.get(
      routeType,
      Array.from({ length: 300 }, (_, index) => `outbound|${index}||${host}`),
    );
    expect(node!.limitations.join()).toBe('44 resources are not checked, the limit is 256');
  });
});
