import { type Either, isRight } from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { kinds } from '../../../model/kinds/index.ts';
import { resourceOf } from '../api-resource.ts';
import { digestOf, SharedTexts, trimObject } from './trim.ts';

const pod = {
  kind: 'Pod',
  metadata: {
    name: 'reviews-1',
    namespace: 'shop',
    labels: { app: 'reviews' },
    annotations: {
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
      'istio.io/kept': 'yes',
      'example.com/note': 'x',
    },
    managedFields: [{ manager: 'kubelet' }],
    ownerReferences: [{ kind: 'ReplicaSet', name: 'reviews' }],
    generateName: 'reviews-',
  },
  spec: {
    nodeName: 'n1',
    serviceAccountName: 'reviews',
    hostNetwork: true,
    hostname: 'h',
    subdomain: 's',
    tolerations: [{}],
    containers: [
      {
        name: 'app',
        image: 'x',
        env: [{}],
        ports: [{ name: 'http', containerPort: 9080, protocol: 'TCP', hostIP: '' }],
      },
      { name: 'sidecar' },
    ],
    initContainers: [
      { name: 'proxy', image: 'x', restartPolicy: 'Always', ports: [{ name: 'metrics', containerPort: 15090 }] },
    ],
  },
  status: {
    phase: 'Running',
    podIP: '10.1.0.5',
    podIPs: [{ ip: '10.1.0.5' }],
    containerStatuses: [{}],
    conditions: [
      { type: 'PodScheduled', status: 'True' },
      { type: 'Ready', status: 'True', lastProbeTime: null, message: 'x' },
    ],
  },
};

/** The decoded object, which trimming must not change. */
function decoded(name: 'Pod' | 'Node' | 'Service' | 'EndpointSlice', object: object): unknown {
  const { apiVersion: _, kind: __, metadata: ___, ...body } = object as Record<string, unknown>;
  const result: Either<unknown, unknown> = kinds[name].decode(body, 'shop');
  if (!isRight(result)) throw new Error('it is refused');
  return result.right;
}

/** Keeps only containers with ports and one condition. */
const withPorts = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value).replaceAll(',{"ports":[]}', '').replaceAll('{"type":"PodScheduled","status":"True"},', ''),
  );

describe('trimming an object', () => {
  it('keeps the fields of a Pod that are used', () => {
    const trimmedPod = trimObject(pod, resourceOf('Pod'), new SharedTexts());
    expect(decoded('Pod', trimmedPod)).toEqual(withPorts(decoded('Pod', pod)));
    expect(trimmedPod).toEqual({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'reviews-1',
        namespace: 'shop',
        labels: { app: 'reviews' },
      },
      spec: {
        ...{ nodeName: 'n1', serviceAccountName: 'reviews', hostname: 'h', subdomain: 's' },
        containers: [{ ports: [{ name: 'http', containerPort: 9080, protocol: 'TCP' }] }],
        initContainers: [{ restartPolicy: 'Always', ports: [{ name: 'metrics', containerPort: 15090 }] }],
      },
      status: {
        ...{ phase: 'Running', podIP: '10.1.0.5', podIPs: [{ ip: '10.1.0.5' }] },
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    });
  });

  it('keeps of init containers only those that run continuously', () => {
    const wait = { name: 'wait', ports: [{ name: 'http', containerPort: 1 }] };
    const trimmedObject = trimObject(
      { ...pod, spec: { containers: [], initContainers: [wait] } },
      resourceOf('Pod'),
      new SharedTexts(),
    );
    expect(trimmedObject.spec).toEqual({ containers: [] });
  });

  it('keeps the addresses and labels of a Node', () => {
    const node = {
      metadata: { name: 'n1', labels: { zone: 'a' } },
      status: { addresses: [{ type: 'InternalIP', address: '10.0.0.1' }], images: [{}] },
    };
    const trimmedNode = trimObject(node, resourceOf('Node'), new SharedTexts());
    expect(decoded('Node', trimmedNode)).toEqual(decoded('Node', node));
    expect(JSON.stringify(trimmedNode)).not.toContain('images');
  });

  it('keeps the fields of a Service and an EndpointSlice that are used', () => {
    const service = {
      metadata: { name: 'web', annotations: { 'networking.istio.io/exportTo': '.', note: 'x'.repeat(250_000) } },
      spec: {
        ...{ type: 'LoadBalancer', clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'], selector: { app: 'web' } },
        ...{ externalIPs: ['192.0.2.1'], internalTrafficPolicy: 'Local', publishNotReadyAddresses: true },
        ...{ trafficDistribution: 'PreferClose', sessionAffinity: 'None', loadBalancerSourceRanges: ['0.0.0.0/0'] },
        ports: [
          { name: 'http', port: 80, protocol: 'TCP', targetPort: 'web', nodePort: 30_080, appProtocol: 'http', x: 1 },
        ],
      },
      status: { conditions: [{}], loadBalancer: { ingress: [{ ip: '192.0.2.2', hostname: 'a.test', ports: [{}] }] } },
    };
    const slice = {
      ...{
        metadata: { name: 'web-1' },
        addressType: 'IPv4',
        ports: [{ name: 'http', port: 80, protocol: 'TCP', x: 1 }],
      },
      endpoints: [
        {
          ...{ addresses: ['10.1.0.5'], conditions: { ready: true }, hostname: 'h', nodeName: 'n1', zone: 'a' },
          targetRef: { kind: 'Pod', name: 'web-1', namespace: 'shop', uid: 'u', resourceVersion: '1' },
          ...{ hints: { forZones: [{ name: 'a' }] }, deprecatedTopology: { x: 'y'.repeat(1_000) } },
        },
      ],
    };
    for (const [kind, object] of [['Service', service] as const, ['EndpointSlice', slice] as const]) {
      const trimmedObject = trimObject(object, resourceOf(kind), new SharedTexts());
      expect(decoded(kind, trimmedObject)).toEqual(decoded(kind, object));
      expect(JSON.stringify(trimmedObject).length).toBeLessThan(700);
    }
    expect(trimObject(service, resourceOf('Service'), new SharedTexts()).metadata.annotations).toEqual({
      'networking.istio.io/exportTo': '.',
    });
  });

  it("keeps only digests of a selected ConfigMap's values, whatever their size", () => {
    const object = { metadata: { name: 'a' }, data: { 'root-cert.pem': 'x'.repeat(1_000_000), other: 'y' } };
    const { data } = trimObject(object, resourceOf('ConfigMap'), new SharedTexts(), { digestsData: true });
    expect(data).toEqual({ 'root-cert.pem': digestOf('x'.repeat(1_000_000)) });
    expect(digestOf('a')).toBe('sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb');
  });

  it('keeps all metadata of an object that is selected by name, except managed fields', () => {
    const { metadata } = trimObject(pod, resourceOf('Pod'), new SharedTexts(), { keepsData: true });
    const { managedFields: _, ...otherMetadata } = pod.metadata;
    expect(metadata).toEqual(otherMetadata);
  });

  it('keeps the credential keys of Secrets and ConfigMaps, and the mesh settings', () => {
    const metadata = { name: 'a' };
    const data = { 'tls.crt': 'Yw==', 'tls.key': 'aw==', 'ca.crt': 'YQ==', password: 'c2VjcmV0', mesh: 'bQ==' };
    const secret = { metadata, type: 'kubernetes.io/tls', data, immutable: true };
    expect(trimObject(secret, resourceOf('Secret'), new SharedTexts())).toEqual({
      ...{ apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls' },
      data: { 'tls.crt': 'Yw==', 'tls.key': 'aw==', 'ca.crt': 'YQ==' },
    });
    const settings = {
      metadata,
      data: { mesh: 'a: b', meshNetworks: 'c', other: 'd'.repeat(1_000) },
      binaryData: null,
    };
    expect(trimObject(settings, resourceOf('ConfigMap'), new SharedTexts())).toEqual({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { mesh: 'a: b', meshNetworks: 'c' } },
    });
  });

  it('keeps all fields of other kinds, including the kind Pod of another group', () => {
    const object = { metadata: { name: 'a' }, spec: { hosts: ['a'] }, status: { x: 1 } };
    expect(trimObject(object, resourceOf('VirtualService'), new SharedTexts())).toEqual({
      ...object,
      apiVersion: 'networking.istio.io/v1',
      kind: 'VirtualService',
    });
    const other = { group: 'example.com', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };
    expect(trimObject(object, other, new SharedTexts())).toMatchObject({ spec: { hosts: ['a'] } });
  });

  it.each([
    [{ spec: null, status: null }],
    [{ spec: 'text', status: [] }],
    [{ spec: { containers: [null, { ports: 'x' }, { ports: [null] }] }, status: { conditions: {} } }],
    [{}],
  ])('does not throw for %j', (body) => {
    const labels = ['no', 'labels'] as unknown as Record<string, string>;
    expect(trimObject({ metadata: { name: 'a', labels }, ...body }, resourceOf('Pod'), new SharedTexts()).kind).toBe(
      'Pod',
    );
  });

  it('keeps labels whose names are properties of all JavaScript objects', () => {
    const metadata = JSON.parse('{"name": "a", "labels": {"__proto__": "x", "constructor": "y"}}');
    const { labels = {} } = trimObject({ metadata }, resourceOf('Service'), new SharedTexts()).metadata;
    expect(Object.entries(labels)).toEqual([
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ]);
  });

  it('shares the labels and ports of similar pods', () => {
    const sharedTexts = new SharedTexts();
    const copy = (name: string) =>
      trimObject({ ...structuredClone(pod), metadata: { ...pod.metadata, name } }, resourceOf('Pod'), sharedTexts);
    const [one, other] = [copy('a'), copy('b')];
    expect(one.metadata.labels).toBe(other.metadata.labels);
    expect((one.spec as { containers: unknown }).containers).toBe((other.spec as { containers: unknown }).containers);
  });

  it('shares repeated strings, and clears the shared strings when there are too many', () => {
    const sharedTexts = new SharedTexts(2);
    const one = Buffer.from('a longer text').toString();
    expect(sharedTexts.shareText(one)).toBe(sharedTexts.shareText(Buffer.from('a longer text').toString()));
    expect(sharedTexts.shareValue({ a: [1] })).toBe(sharedTexts.shareValue({ a: [1] }));
    expect(sharedTexts.shareValue({ a: [1] })).not.toBe(sharedTexts.shareValue({ a: [2] }));
    for (const a of [3, 4, 5, 6]) expect(sharedTexts.shareValue({ a })).toEqual({ a });
    for (const text of ['a', 'b', 'c', 'd']) expect(sharedTexts.shareText(text)).toBe(text);
    expect(sharedTexts.size).toBeLessThanOrEqual(2);
  });

  it('limits the total size of shared strings', () => {
    const sharedTexts = new SharedTexts(20_000, 100_000);
    for (let at = 0; at < 2_000; at++) {
      sharedTexts.shareText(`${at}${'x'.repeat(900)}`);
      sharedTexts.shareValue({ at, text: 'x'.repeat(900) });
      expect(sharedTexts.characters).toBeLessThanOrEqual(100_000);
    }
    expect(sharedTexts.size).toBeGreaterThan(50);
  });
});
