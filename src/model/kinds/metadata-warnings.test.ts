import { describe, expect, it } from 'vitest';
import { readConfigFile } from '../config/config-file.ts';

const object = (kind: string, metadata: string, group = 'networking.istio.io/v1', spec = 'hosts: [a.test]'): string =>
  `apiVersion: ${group}\nkind: ${kind}\nmetadata: {name: x, namespace: shop, ${metadata}}\nspec: {${spec}}\n`;
const service = (metadata: string): string => object('Service', metadata, 'v1', 'ports: [{port: 80}]');
const pod = (metadata: string): string => object('Pod', metadata, 'v1', 'containers: []');

const warningsOf = (yaml: string): string[] =>
  readConfigFile('x.yaml', yaml, { creationTimestamp: 1 }).problems.map(({ severity, code, field, message }) => {
    expect([severity, code]).toEqual(['warning', 'FIELD_WITHOUT_EFFECT']);
    return `${field}: ${message}`;
  });

describe('an annotation or label', () => {
  it.each([
    [
      'a misspelled annotation',
      service('annotations: {networking.istio.io/exportsTo: "."}'),
      'metadata.annotations["networking.istio.io/exportsTo"]: has no effect: there is no such annotation; did you mean networking.istio.io/exportTo?',
    ],
    [
      'a misspelled domain',
      service('annotations: {networking.isto.io/exportTo: "."}'),
      'metadata.annotations["networking.isto.io/exportTo"]: has no effect: there is no such annotation; did you mean networking.istio.io/exportTo?',
    ],
    [
      'a name of another domain',
      pod('annotations: {traffic.istio.io/excludeInterfaces: eth1}'),
      'metadata.annotations["traffic.istio.io/excludeInterfaces"]: has no effect: there is no such annotation; did you mean traffic.sidecar.istio.io/excludeInterfaces?',
    ],
    [
      'an unknown annotation',
      service('annotations: {istio.io/something: a}'),
      'metadata.annotations["istio.io/something"]: has no effect: there is no such annotation',
    ],
    [
      'a misspelled label',
      service('labels: {topology.istio.io/netwrok: a}'),
      'metadata.labels["topology.istio.io/netwrok"]: has no effect: there is no such label; did you mean topology.istio.io/network?',
    ],
    [
      'a label that is written as an annotation',
      service('annotations: {topology.istio.io/network: a}'),
      'metadata.annotations["topology.istio.io/network"]: has no effect: it is a label: move it to metadata.labels',
    ],
    [
      'an annotation of another kind',
      object(
        'VirtualService',
        'annotations: {networking.istio.io/exportTo: "."}',
        undefined,
        'hosts: [a.test], http: [{directResponse: {status: 200}}]',
      ),
      'metadata.annotations["networking.istio.io/exportTo"]: has no effect: it applies to Service only',
    ],
    [
      'an annotation that only injection reads',
      service('annotations: {traffic.sidecar.istio.io/includeInboundPorts: "80"}'),
      'metadata.annotations["traffic.sidecar.istio.io/includeInboundPorts"]: has no effect: it applies to Pod only',
    ],
    [
      'an annotation that the injector does not read',
      pod('annotations: {sidecar.istio.io/enableCoreDump: "true"}'),
      'metadata.annotations["sidecar.istio.io/enableCoreDump"]: has no effect: the injector of this control plane does not read it',
    ],
    [
      'a label of ambient mode',
      service('labels: {istio.io/use-waypoint: a}'),
      'metadata.labels["istio.io/use-waypoint"]: has no effect: ambient mode is not supported',
    ],
    [
      'an unknown key of the Gateway API',
      service('labels: {gateway.networking.k8s.io/gatewayname: a}'),
      'metadata.labels["gateway.networking.k8s.io/gatewayname"]: has no effect: there is no such label; did you mean gateway.networking.k8s.io/gateway-name?',
    ],
  ])('is reported if it has no effect: %s', (_, yaml, expected) => {
    expect(warningsOf(yaml)).toEqual([expected]);
  });

  it.each([
    ['a key that is read on the kind', service('annotations: {networking.istio.io/exportTo: "."}')],
    ['a key of another program', service('labels: {operator.istio.io/component: Pilot, istio.io/rev: a}')],
    [
      'a key of another domain',
      service('labels: {app.kubernetes.io/name: a, studio.io/inject: a}, annotations: {a: b}'),
    ],
    [
      'a value that requests the default behaviour',
      pod('labels: {sidecar.istio.io/inject: "false", istio.io/use-waypoint: none}'),
    ],
    ['a key that the agent of the Pod reads', pod('annotations: {proxy.istio.io/config: "{}"}')],
  ])('is not reported if it is %s', (_, yaml) => {
    expect(warningsOf(yaml)).toEqual([]);
  });

  it('is reported at its line and column', () => {
    const text = service('a: b').replace(', a: b', '').replace('}\nspec', ',\n  labels: {istio.io/x: a}}\nspec');
    const [problem] = readConfigFile('x.yaml', text, { creationTimestamp: 1 }).problems;
    expect(problem).toMatchObject({ line: 4 });
  });
});
