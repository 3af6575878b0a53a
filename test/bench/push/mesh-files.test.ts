import { describe, expect, test } from 'vitest';
import { readConfigFile } from '../../../src/model/config/config-file.ts';
import { changedFile, hostOf, markOf, meshFlavors, noVariety, serviceFiles, varietyFiles } from './mesh-files.ts';
import { scopeMeshes } from './scopes.ts';
import { varietyRows } from './varied-meshes.ts';

const size = { services: 3, endpoints: 4 };
const rows = Object.entries(varietyRows);

describe.each(meshFlavors)('a service of the %s mesh', (flavor) => {
  test('each file of a service contains one object', () => {
    const files = Object.entries(serviceFiles(2, { ...size, flavor }));
    expect(files).toHaveLength(flavor === 'istio' ? 3 : 4);
    for (const [, text] of files) expect(text.match(/^kind: /gm)).toHaveLength(1);
  });

  test('a change sets a value that occurs nowhere else in the files', () => {
    const mark = markOf(7);
    for (const change of ['endpoint', 'route', 'rule'] as const) {
      const [name, text] = changedFile(change, mark, { ...size, flavor });
      expect(text.split(mark)).toHaveLength(2);
      expect(serviceFiles(0, { ...size, flavor })[name]).toBeDefined();
      expect(serviceFiles(0, { ...size, flavor })[name]).not.toContain(mark);
    }
  });
});

test('values of changes are distinct addresses, and none is a prefix of another', () => {
  const marks = Array.from({ length: 2_000 }, (_, i) => markOf(i));
  expect(new Set(marks).size).toBe(marks.length);
  for (const mark of marks) expect(mark).toMatch(/^172\.\d\d\.1\d\d\.\d{2,3}$/);
});

const varieties = { ...scopeMeshes, ...Object.fromEntries(rows.map(([row, { variety }]) => [row, variety])) };

describe.each(Object.entries(varieties))('the mesh of row %s', (_, variety) => {
  const varied = { services: 20, endpoints: 2, flavor: 'istio', variety } as const;
  const files = Object.assign({}, ...[0, 9].map((one) => serviceFiles(one, varied)), varietyFiles(varied)) as Record<
    string,
    string
  >;

  test('the mesh and its changes pass validation', () => {
    const changes = (['endpoint', 'route', 'rule'] as const).map((change) => changedFile(change, markOf(1), varied));
    for (const [name, text] of [...Object.entries(files), ...changes]) {
      expect(files[name], name).toBeDefined();
      const { configs, problems } = readConfigFile(name, text, { creationTimestamp: 0 });
      expect([configs.length, problems], name).toEqual([1, []]);
    }
  });

  test('the mesh has the objects that its row describes', () => {
    const kinds = Object.values(files).map((text) => /^kind: (.*)$/m.exec(text)![1]);
    const count = (kind: string): number => kinds.filter((one) => one === kind).length;
    expect(count('Sidecar')).toBe(variety.sidecars === 'none' ? 0 : variety.namespaces);
    expect(count('VirtualService')).toBe(2 + variety.gatewayHosts);
    expect(count('EnvoyFilter')).toBe(Number(variety.gatewayHosts > 0) + Number(variety.hasVersions));
    expect(files['se-00009.yaml']!.includes('exportTo')).toBe(variety.privateServices !== 'none');
    expect(files['se-00000.yaml']).not.toContain('exportTo');
    expect(files['se-00009.yaml']).toContain(hostOf(9, variety));
  });
});

test('services are spread over namespaces, and without a variety all services are in the namespace default', () => {
  expect([0, 1, 2].map((service) => hostOf(service, { ...noVariety, namespaces: 2 }))).toEqual([
    'svc-00000.ns-0.svc.cluster.local',
    'svc-00001.ns-1.svc.cluster.local',
    'svc-00002.ns-0.svc.cluster.local',
  ]);
  expect(hostOf(1)).toBe('svc-00001.default.svc.cluster.local');
});
