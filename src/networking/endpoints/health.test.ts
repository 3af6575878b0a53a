import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import type { ClusterLoadAssignment } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { defaultFeatures, type Features } from '../../model/mesh/features.ts';
import { buildPushContext } from '../../model/push-context/build-push-context.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { buildEndpoints } from './build.ts';

/** A mesh with one pod of each health, in zones a and b of two nodes. */
function mesh(service: string, { rule = '', ...features }: Partial<Features> & { rule?: string } = {}): PushContext {
  const conditions = {
    healthy: '{ ready: true }',
    unhealthy: '{ ready: false }',
    draining: '{ ready: false, serving: true, terminating: true }',
    terminating: '{ ready: false, serving: false, terminating: true }',
  };
  const pods = Object.entries(conditions).map(
    ([health, condition], index) =>
      `{ addresses: [10.0.0.${index + 1}], conditions: ${condition}, nodeName: node-${index % 2}, targetRef: { kind: Pod, name: ${health} } }`,
  );
  const baseMesh = givenMesh(`
apiVersion: v1
kind: Service
metadata: { name: web, namespace: default${service.includes('session') ? ', labels: { istio.io/persistent-session: "yes" }' : ''} }
spec: { clusterIP: 10.1.0.1, selector: { app: web }, ports: [{ name: http, port: 80 }]${service.includes('local') ? ', internalTrafficPolicy: Local' : ''} }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: default, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints: [${pods.join(', ')}]
${Object.keys(conditions)
  .map(
    (health, index) => `---
apiVersion: v1
kind: Pod
metadata: { name: ${health}, namespace: default, labels: { app: web${service.includes('labelled') && health === 'healthy' ? ', istio.io/draining: "yes"' : ''} } }
spec: { nodeName: node-${index % 2}, containers: [] }
status: { phase: Running, podIP: 10.0.0.${index + 1} }`,
  )
  .join('\n')}
${
  rule &&
  `---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: web }
spec: { host: web, trafficPolicy: ${rule} }`
}
`);
  const { context, configs, registry } = baseMesh;
  const { version, domain } = context;
  const all = { ...defaultFeatures, ...features };
  return buildPushContext({ version, mesh: context.mesh, domain, configs, ...registry, features: all });
}

/** Returns address and Envoy's health status (1 healthy, 2 unhealthy, 3 draining) of each endpoint, such as `10.0.0.1 2`. */
function sentEndpoints(push: PushContext, node = ''): string[] {
  const shape = givenShape({ metadata: { NODE_NAME: node } }, push);
  const [resource] = buildEndpoints(shape, push, ['outbound|80||web.default.svc.cluster.local']);
  const groups = (resource!.message as ClusterLoadAssignment).endpoints;
  return groups
    .flatMap(({ lbEndpoints }) => lbEndpoints)
    .map(({ hostIdentifier, healthStatus }) => {
      const address = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined;
      return `${address?.case === 'socketAddress' ? address.value.address : '?'} ${healthStatus}`;
    });
}

describe('unhealthy endpoints', () => {
  it('endpoints that are not ready are sent as unhealthy, and terminating ones are omitted', () => {
    expect(sentEndpoints(mesh(''))).toEqual(['10.0.0.1 1', '10.0.0.2 2']);
  });

  it('endpoints that are not ready are omitted if the environment disables sending them', () => {
    expect(sentEndpoints(mesh('', { autoSendUnhealthy: false }))).toEqual(['10.0.0.1 1']);
  });

  it('endpoints that are not ready are omitted with minHealthPercent unless the environment requires them', () => {
    const rule = '{ outlierDetection: { minHealthPercent: 50 } }';
    expect(sentEndpoints(mesh('', { rule }))).toEqual(['10.0.0.1 1']);
    expect(sentEndpoints(mesh('', { rule, sendUnhealthy: true }))).toEqual(['10.0.0.1 1', '10.0.0.2 2']);
  });

  it('draining endpoints are sent if the service has persistent sessions', () => {
    expect(sentEndpoints(mesh('session'))).toEqual(['10.0.0.1 1', '10.0.0.2 2', '10.0.0.3 3']);
  });

  it('an endpoint counts as draining if it has the draining label', () => {
    expect(sentEndpoints(mesh('labelled'))).toEqual(['10.0.0.2 2']);
    expect(sentEndpoints(mesh('labelled session'))).toEqual(['10.0.0.1 3', '10.0.0.2 2', '10.0.0.3 3']);
    expect(sentEndpoints(mesh('labelled', { drainingLabel: 'other' }))).toEqual(['10.0.0.1 1', '10.0.0.2 2']);
  });
});

it("a service with node-local traffic has only endpoints on the client's node", () => {
  expect(sentEndpoints(mesh('local'), 'node-0')).toEqual(['10.0.0.1 1']);
  expect(sentEndpoints(mesh('local'), 'node-1')).toEqual(['10.0.0.2 2']);
  expect(sentEndpoints(mesh('local'))).toEqual([]);
  expect(sentEndpoints(mesh(''), 'node-1')).toEqual(['10.0.0.1 1', '10.0.0.2 2']);
});
