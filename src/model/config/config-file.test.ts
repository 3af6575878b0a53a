import { describe, expect, it } from 'vitest';
import { codedProblem } from '../../../test/fixtures/coded-error.ts';
import { readConfigFile, withoutRepetitions } from './config-file.ts';

const options = { creationTimestamp: 1000 };

const entry = (name: string, address = '10.0.0.1'): string => `apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: ${name}, namespace: shop, labels: {app: web}}
spec: {address: ${address}}
`;

const problemsOf = (text: string): string[] => readConfigFile('mesh/a.yaml', text, options).problems.map(codedProblem);

describe('a configuration file', () => {
  it('returns its objects with their envelopes', () => {
    const { configs, problems } = readConfigFile('mesh/a.yaml', `---\n${entry('one')}`, options);
    expect(problems).toEqual([]);
    expect(configs).toEqual([
      {
        kind: 'WorkloadEntry',
        apiVersion: 'networking.istio.io/v1',
        name: 'one',
        namespace: 'shop',
        labels: { app: 'web' },
        annotations: {},
        resourceVersion: expect.stringMatching(/^[0-9a-f]{16}$/),
        creationTimestamp: 1000,
        spec: { address: '10.0.0.1' },
        source: { file: 'mesh/a.yaml', line: 2 },
      },
    ]);
  });

  it('puts objects without a namespace into default, and keeps their creationTimestamp', () => {
    const text = `apiVersion: networking.istio.io/v1beta1
kind: WorkloadEntry
metadata: {name: a, creationTimestamp: 2024-01-01T00:00:00Z}
spec: {address: 10.0.0.1}`;
    expect(readConfigFile('a.yaml', text, options).configs[0]).toMatchObject({
      namespace: 'default',
      creationTimestamp: Date.UTC(2024, 0, 1),
    });
  });

  it('reads the objects of a List', () => {
    const text = `kind: List\napiVersion: v1\nitems:\n- ${entry('a').trim().replaceAll('\n', '\n  ')}\n- ${entry('b', '"?"').trim().replaceAll('\n', '\n  ')}`;
    expect(readConfigFile('a.yaml', text, options).configs.map(({ name }) => name)).toEqual(['a']);
    expect(problemsOf(text)).toEqual([
      'mesh/a.yaml:11:10: error: WorkloadEntry shop/b: spec.address: FIELD_FORMAT_INVALID got "?"',
    ]);
  });

  it('reads the objects of a typed list, even if items have no kind, and reports errors with their fields', () => {
    const item = (name: string, address: string, envelope = ''): string =>
      `- {${envelope}metadata: {name: ${name}, namespace: shop}, spec: {address: ${address}}}\n`;
    const of = 'apiVersion: networking.istio.io/v1\nkind: WorkloadEntryList\nitems:\n';
    const envelopeStart = 'apiVersion: networking.istio.io/v1beta1, kind: WorkloadEntry, ';
    const text = `${of}${item('a', '10.0.0.1')}${item('b', '10.0.0.2', envelopeStart)}${item('c', '"?"')}`;
    expect(readConfigFile('a.yaml', text, options).configs.map(({ name, apiVersion }) => [name, apiVersion])).toEqual([
      ['a', 'networking.istio.io/v1'],
      ['b', 'networking.istio.io/v1beta1'],
    ]);
    expect(problemsOf(text)).toEqual([
      'mesh/a.yaml:6:49: error: WorkloadEntry shop/c: spec.address: FIELD_FORMAT_INVALID got "?"',
    ]);
  });

  it('fails closed for an invalid policy in a typed list', () => {
    const policy = '{metadata: {name: p, namespace: shop}, spec: {selector: {matchLabels: {app: a}}, action: DENYY}}';
    const text = `apiVersion: security.istio.io/v1\nkind: AuthorizationPolicyList\nitems: [${policy}]\n`;
    const { configs, standIns } = readConfigFile('a.yaml', text, options);
    expect(configs).toEqual([]);
    expect(standIns.map(({ kind, namespace, standsFor }) => [kind, namespace, standsFor?.objectName])).toEqual([
      ['AuthorizationPolicy', 'shop', 'AuthorizationPolicy shop/p'],
    ]);
  });

  it('rejects each item in a typed list of an unknown kind, and suggests the intended kind', () => {
    const text =
      'apiVersion: networking.istio.io/v1\nkind: VirtualServicesList\nitems: [{metadata: {name: a}, spec: {}}]\n';
    expect(problemsOf(text)).toEqual([expect.stringContaining('KIND_UNKNOWN')]);
  });

  it('reports each error with file, line, object and field, in line order', () => {
    const text = `${entry('good')}---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: web
spec:
  hosts: [web]
  http:
  - timeout: soon
    rout: []
`;
    expect(problemsOf(text)).toEqual([
      'mesh/a.yaml:13:5: error: VirtualService default/web: spec.http[0].timeout: FIELD_FORMAT_INVALID got "soon"',
      'mesh/a.yaml:13:5: error: VirtualService default/web: spec.http[0]: FIELD_REQUIRED (exactly one of route, redirect and directResponse) got none',
      'mesh/a.yaml:14:5: error: VirtualService default/web: spec.http[0].rout: FIELD_UNKNOWN near route',
    ]);
  });

  it('reports all errors of an object together: envelope, fields and rules for several fields', () => {
    const text = `apiVersion: networking.istio.io/v7
kind: VirtualService
metadata: {name: Web, labels: {a: 1}}
spec:
  hosts: [a.b, "*.b"]
  http:
  - redirect: {uri: /x, redirectCode: 200}
    rewrite: {uri: /y}
  - route: [{destination: {host: x}}]
    future: 1
`;
    expect(problemsOf(text).map((problem) => problem.replace('mesh/a.yaml:', '').slice(0, 95))).toEqual([
      '1:1: error: VirtualService default/Web: apiVersion: FIELD_VALUE_UNKNOWN got "networking.istio.i',
      '3:12: error: VirtualService default/Web: metadata.name: FIELD_FORMAT_INVALID got "Web"',
      '3:32: error: VirtualService default/Web: metadata.labels.a: FIELD_TYPE_INVALID got 1',
      '5:16: error: VirtualService default/Web: spec.hosts[1]: FIELD_DUPLICATE got "*.b"',
      '7:25: error: VirtualService default/Web: spec.http[0].redirect.redirectCode: FIELD_OUT_OF_RANGE',
      '8:5: error: VirtualService default/Web: spec.http[0].rewrite: FIELDS_EXCLUSIVE',
      '10:5: warning: VirtualService default/Web: spec.http[1].future: FIELD_UNKNOWN',
    ]);
  });

  it('accepts unknown fields of newer APIs, and reports each with its line', () => {
    const text = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web}
spec:
  hosts: [a.b]
  novelty: 1
  http:
  - match: [{uri: {prefix: /x}}]
    route: [{destination: {host: x, zone: near}}]
`;
    expect(problemsOf(text)).toEqual([
      'mesh/a.yaml:6:3: warning: VirtualService default/web: spec.novelty: FIELD_UNKNOWN',
      'mesh/a.yaml:9:37: warning: VirtualService default/web: spec.http[0].route[0].destination.zone: FIELD_UNKNOWN',
    ]);
    expect(readConfigFile('a.yaml', text, options).configs).toHaveLength(1);
  });

  it('rejects misspelled fields and unknown fields that can restrict access', () => {
    const refusedFields = (kind: string, spec: string, group = 'security.istio.io'): string[] => {
      const read = readConfigFile(
        'a.yaml',
        `apiVersion: ${group}/v1\nkind: ${kind}\nmetadata: {name: a}\nspec: ${spec}`,
        options,
      );
      expect(read.configs).toEqual([]);
      return read.problems.map(({ severity, field }) => `${severity} ${field}`);
    };
    expect(refusedFields('AuthorizationPolicy', '{novelty: 1}')).toEqual(['error spec.novelty']);
    expect(refusedFields('PeerAuthentication', '{mtls: {mode: STRICT, novelty: 1}}')).toEqual([
      'error spec.mtls.novelty',
    ]);
    expect(refusedFields('RequestAuthentication', '{jwtRules: [{issuer: a, novelty: 1}]}')).toEqual([
      'error spec.jwtRules[0].novelty',
    ]);
    const networking = 'networking.istio.io';
    const tls = '{mode: SIMPLE, novelty: 1}';
    expect(refusedFields('DestinationRule', `{host: a, trafficPolicy: {tls: ${tls}}}`, networking)).toEqual([
      'error spec.trafficPolicy.tls.novelty',
    ]);
    const server = `{port: {number: 443, name: a, protocol: HTTPS}, hosts: ["*"], tls: {credentialName: c, ${tls.slice(1)}}`;
    expect(refusedFields('Gateway', `{servers: [${server}]}`, networking)).toEqual([
      'error spec.servers[0].tls.novelty',
    ]);
    expect(refusedFields('DestinationRule', '{host: a, trafficPolicy: {tsl: {mode: MUTUAL}}}', networking)).toEqual([
      'error spec.trafficPolicy',
      'error spec.trafficPolicy.tsl',
    ]);
    expect(refusedFields('EnvoyFilter', '{workloadSelector: {novelty: {a: b}}}', networking)).toEqual([
      'error apiVersion',
      'error spec.workloadSelector.novelty',
    ]);
  });

  it('omits an invalid document, reports its position, and reads the others', () => {
    const file = readConfigFile(
      'a.yaml',
      `${entry('a')}---\n${entry('b').replace('10.0.0.1}', '10.0.0.1')}---\n${entry('c')}`,
      options,
    );
    expect(file.configs.map(({ name }) => name)).toEqual(['a', 'c']);
    expect(file.problems).toHaveLength(1);
    expect(file.problems[0]).toMatchObject({
      severity: 'error',
      line: expect.toSatisfy((line: number) => line >= 9 && line <= 10),
      key: { kind: 'WorkloadEntry', namespace: 'shop', name: 'b' },
      message: expect.stringContaining('YAML: '),
    });
  });

  it.each([
    ['authentication.istio.io/v1alpha1', 'MeshPolicy', 'KIND_UNSUPPORTED', ''],
    ['config.istio.io/v1alpha2', 'rule', 'KIND_UNSUPPORTED', ''],
    ['gateway.networking.k8s.io/v1', 'UDPRoute', 'KIND_UNSUPPORTED', ''],
    ['rbac.istio.io/v1alpha1', 'ServiceRole', 'KIND_UNSUPPORTED', ''],
    ['networking.k8s.io/v1', 'VirtualService', 'KIND_UNKNOWN', 'networking.istio.io/v1'],
    ['networking.istio.io/v1', 'VirtualServise', 'KIND_UNKNOWN', 'VirtualService'],
    ['example.com/v1', 'Pizza', 'KIND_UNKNOWN', ''],
    ['apps/v1', 'Deploymnt', 'KIND_UNKNOWN', ''],
    // A kind of another project that restricts access to its proxies.
    ['policy.linkerd.io/v1alpha1', 'AuthorizationPolicy', 'KIND_UNKNOWN', 'security.istio.io/v1'],
  ])('skips %s %s with a warning', (apiVersion, kind, code, nearHint) => {
    const file = readConfigFile('a.yaml', `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: x}\n`, options);
    expect(file.problems).toEqual([
      expect.objectContaining({
        severity: 'warning',
        code,
        got: `${apiVersion} ${kind}`,
        ...(nearHint && { near: nearHint }),
      }),
    ]);
    expect(file.configs).toEqual([]);
  });

  it.each([
    ['apps/v1', 'Deployment'],
    ['v1', 'ServiceAccount'],
    ['rbac.authorization.k8s.io/v1', 'ClusterRole'],
  ])('skips Kubernetes objects of kind %s %s without a message', (apiVersion, kind) => {
    const file = readConfigFile('a.yaml', `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: x}\n`, options);
    expect([file.problems, file.configs]).toEqual([[], []]);
  });

  it.each([
    ['security.istio.io/v1', 'AuthorizationPolcy', 'security.istio.io/v1 AuthorizationPolicy'],
    ['security.istoi.io/v1', 'AuthorizationPolicy', 'security.istio.io/v1'],
    ['networking.istio.io/v1', 'AuthorizationPolicy', 'security.istio.io/v1'],
    ['istio.io/v1', 'PeerAuthentification', 'security.istio.io/v1 PeerAuthentication'],
    ['security.istio.io', 'requestauthentication', 'security.istio.io/v1 RequestAuthentication'],
  ])('rejects the misspelled kind %s %s, and suggests the intended kind', (apiVersion, kind, nearHint) => {
    const file = readConfigFile('a.yaml', `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: x}\n`, options);
    expect(file.problems).toEqual([
      expect.objectContaining({
        severity: 'error',
        key: expect.objectContaining({ namespace: 'default', name: 'x' }),
        ...{ code: 'KIND_UNKNOWN', got: `${apiVersion} ${kind}`, near: nearHint },
      }),
    ]);
    expect(file.standIns).toHaveLength(1);
  });

  it('rejects unknown kinds in the API group of restrictions', () => {
    const text = 'apiVersion: security.istio.io/v1\nkind: NetworkPolicy\nmetadata: {name: x}\n';
    expect(problemsOf(text)).toEqual([
      'mesh/a.yaml:2:1: error: kind: KIND_UNKNOWN got security.istio.io/v1 NetworkPolicy',
    ]);
  });

  it.each([
    [
      'apiVersion: networking.istio.io/v2\nkind: Gateway\nmetadata: {name: x}\nspec: {}',
      'apiVersion',
      'FIELD_VALUE_UNKNOWN',
      '"networking.istio.io/v2"',
    ],
    ['apiVersion: networking.istio.io/v1\nkind: Gateway\nspec: {}', 'metadata', 'FIELD_REQUIRED', undefined],
    [
      'apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: A_b}\nspec: {}',
      'metadata.name',
      'FIELD_FORMAT_INVALID',
      '"A_b"',
    ],
    [
      'apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: a, namespace: a.b}\nspec: {}',
      'metadata.namespace',
      'FIELD_FORMAT_INVALID',
      '"a.b"',
    ],
    [
      'apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: a}\nspecs: {}',
      'specs',
      'FIELD_UNKNOWN',
      undefined,
    ],
    [
      'apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: a, labels: {v: 1}}\nspec: {}',
      'metadata.labels.v',
      'FIELD_TYPE_INVALID',
      '1',
    ],
    [
      'apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: a, annotations: {internal.istio.io/x: y}}\nspec: {}',
      'metadata.annotations["internal.istio.io/x"]',
      'FIELD_NOT_ALLOWED',
      undefined,
    ],
    ['kind: Gateway', 'apiVersion', 'FIELD_REQUIRED', undefined],
    ['just text', undefined, 'FIELD_TYPE_INVALID', '"just text"'],
  ])('rejects an invalid envelope: %s', (text, field, code, gotText) => {
    const file = readConfigFile('a.yaml', text, options);
    const found = file.problems.find((problem) => problem.field === field);
    expect(found).toMatchObject({ severity: 'error', code, ...(gotText && { got: gotText }) });
    expect(file.configs).toEqual([]);
  });

  it('reports nothing for empty documents', () => {
    expect(readConfigFile('a.yaml', '\n---\n# nothing\n---\n', options)).toMatchObject({ configs: [], problems: [] });
  });

  it('reuses objects of unchanged documents, and updates their line numbers', () => {
    const previousFile = readConfigFile('a.yaml', `${entry('a')}---\n${entry('b')}---\n${entry('c')}`, options);
    const changedFile = readConfigFile(
      'a.yaml',
      `${entry('a')}---\n# moved\n${entry('b', '10.0.0.2')}---\n${entry('c')}`,
      {
        ...options,
        previous: previousFile,
      },
    );
    expect(changedFile.configs[0]).toBe(previousFile.configs[0]);
    expect(changedFile.configs[1]?.resourceVersion).not.toBe(previousFile.configs[1]?.resourceVersion);
    expect(changedFile.configs[2]?.spec).toBe(previousFile.configs[2]?.spec);
    expect(changedFile.configs[2]?.source?.line).toBe(previousFile.configs[2]!.source!.line + 1);
  });

  it('assigns equal content the same resource version, regardless of position and comments', () => {
    const versions = [entry('a'), `# comment\n${entry('a')}`].map(
      (text) => readConfigFile('a.yaml', text, options).configs[0]?.resourceVersion,
    );
    expect(versions[0]).toBe(versions[1]);
  });

  it('uses the first of two objects with the same key, and reports its position', () => {
    const { configs } = readConfigFile('a.yaml', `${entry('a')}---\n${entry('a', '10.0.0.2')}`, options);
    const { configs: remaining, problems } = withoutRepetitions(configs);
    expect(remaining).toEqual([configs[0]]);
    expect(problems.map(codedProblem)).toEqual(['a.yaml:6: warning: WorkloadEntry shop/a: OBJECT_DUPLICATE']);
    expect(problems[0]?.message).toMatch(
      /differs from the object of this name in a\.yaml:1, and the first one applies/,
    );
  });

  it('ignores an equal object with the same key, regardless of position and comments', () => {
    const { configs } = readConfigFile('a.yaml', `${entry('a')}---\n# again\n${entry('a')}`, options);
    const { configs: remaining, problems } = withoutRepetitions(configs);
    expect(remaining).toEqual([configs[0]]);
    expect(problems).toEqual([]);
  });
});
