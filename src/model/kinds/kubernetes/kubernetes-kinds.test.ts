import { describe, expect, it } from 'vitest';
import { codedField } from '../../../../test/fixtures/coded-error.ts';
import { readConfigFile } from '../../config/config-file.ts';
import { type Secret, secretBytes } from './secret.ts';

const read = (yaml: string) => readConfigFile('x.yaml', yaml, { creationTimestamp: 1 });
const errorsOf = (yaml: string): string[] => read(yaml).problems.map(codedField);
const object = (kind: string, body: string, group = 'v1'): string =>
  `apiVersion: ${group}\nkind: ${kind}\nmetadata: {name: x}\n${body}\n`;

describe('objects of Kubernetes kinds', () => {
  it('are read without warnings about irrelevant fields', () => {
    const { configs, problems } = read(
      [
        object('Service', 'spec: {ports: [{port: 80, somethingNew: 1}], sessionAffinity: None, ipFamilies: [IPv4]}'),
        object('Pod', 'spec: {containers: [{name: a, image: b, ports: [{containerPort: 80}]}], volumes: []}'),
        object('Node', 'spec: {podCIDR: 10.0.0.0/24}\nstatus: {capacity: {cpu: "4"}}'),
        object('Namespace', 'spec: {finalizers: [kubernetes]}\nstatus: {phase: Active}'),
        object('Endpoints', 'subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}]'),
        object(
          'EndpointSlice',
          'addressType: IPv4\nendpoints: [{addresses: [10.0.0.1]}]\nports: null',
          'discovery.k8s.io/v1',
        ),
        object('Secret', 'immutable: true\ntype: kubernetes.io/tls\ndata: {tls.crt: YQ==}'),
      ].join('---\n'),
    );
    expect(problems).toEqual([]);
    expect(configs.map(({ kind, namespace }) => `${kind} ${namespace}`)).toEqual([
      ...['Service default', 'Pod default', 'Node ', 'Namespace ', 'Endpoints default', 'EndpointSlice default'],
      'Secret default',
    ]);
  });

  it.each([
    ['Service', 'spec: {slector: {app: a}, ports: [{port: 80}]}', 'v1', 'spec.slector', 'selector'],
    ['Service', 'spec: {ports: [{port: 80, targetport: 8080}]}', 'v1', 'spec.ports[0].targetport', 'targetPort'],
    ['Pod', 'spec: {containers: [{name: a, port: [{containerPort: 80}]}]}', 'v1', 'spec.containers[0].port', 'ports'],
    [
      'Ingress',
      'spec: {ingressClass: a, rules: [{hosts: a.test}]}',
      'networking.k8s.io/v1',
      'spec.rules[0].hosts',
      'host',
    ],
  ])(
    'have a warning for a field whose name resembles a known field: %s %s',
    (kind, body, group, field, intendedName) => {
      expect(read(object(kind, body, group)).problems).toMatchObject([
        {
          severity: 'warning',
          code: 'FIELD_WITHOUT_EFFECT',
          field,
          message: expect.stringContaining(`mean ${intendedName}?`),
        },
      ]);
    },
  );

  it('have a warning for session affinity, which proxies do not apply', () => {
    const { problems } = read(object('Service', 'spec: {sessionAffinity: ClientIP, ports: [{port: 80}]}'));
    expect(problems).toMatchObject([{ code: 'FIELD_WITHOUT_EFFECT', field: 'spec.sessionAffinity' }]);
  });

  it.each([
    ['Service', 'spec: {ports: [{name: http}]}', 'spec.ports[0].port: FIELD_REQUIRED'],
    ['Service', 'spec: {type: Cluster}', 'spec.type: FIELD_VALUE_UNKNOWN got "Cluster" near ClusterIP'],
    [
      'Service',
      'spec: {ports: [{port: 80, targetPort: 70000}]}',
      'spec.ports[0].targetPort: FIELD_FORMAT_INVALID got 70000',
    ],
    ['Pod', 'status: {podIP: 10.0.0.1}', 'spec: FIELD_REQUIRED'],
    ['Endpoints', 'subsets: [{addresses: [{hostname: x}]}]', 'subsets[0].addresses[0].ip: FIELD_REQUIRED'],
    ['Node', 'status: {addresses: {}}', 'status.addresses: FIELD_TYPE_INVALID got an object'],
  ])('are rejected with path and message if invalid: %s', (kind, body, coded) => {
    expect(errorsOf(object(kind, body))).toEqual([coded]);
  });

  it('contain no Secret values in messages', () => {
    const [error] = errorsOf(object('Secret', 'data: {tls.key: "top secret!"}'));
    expect(error).toContain('data["tls.key"]: FIELD_FORMAT_INVALID');
    expect(errorsOf(object('Secret', 'data: {tls.key: 12345}\nstringData: {x: 67890}')).join()).not.toMatch(
      /12345|67890/,
    );
    expect(error).not.toContain('secret!');
  });

  it('return the entries of a Secret as bytes, with plain-text entries first', () => {
    const [config] = read(object('Secret', 'data: {a: aGVsbG8=, b: aGVsbG8=}\nstringData: {b: world}')).configs;
    const text = (key: string): string => new TextDecoder().decode(secretBytes(config!.spec as Secret, key));
    expect([text('a'), text('b'), text('none')]).toEqual(['hello', 'world', '']);
  });
});
