import { describe, expect, it } from 'vitest';
import { givenPlane } from '../../../../test/fixtures/given-plane.ts';
import { defaultMeshConfig } from '../../../model/mesh/mesh-config.ts';
import { validateFiles } from '../../config/validation/validate-files.ts';
import { diagnosticsOf } from '../../monitor/diagnostics/push-status.ts';

const settings = { mesh: defaultMeshConfig, scopesGateways: false, domain: 'cluster.local' };

function object(apiVersion: string, kind: string, name: string, spec: string, namespace = 'shop'): string {
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n---\n`;
}

const deployment = (labels: string, namespace = 'shop', annotations = '{}'): string =>
  object(
    'apps/v1',
    'Deployment',
    'd',
    `{template: {metadata: {labels: ${labels}, annotations: ${annotations}}, spec: {}}}`,
    namespace,
  );
const gateway = (selector: string): string =>
  object(
    'networking.istio.io/v1',
    'Gateway',
    'g',
    `{selector: ${selector}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [a.test]}]}`,
  );

async function validated(
  yaml: string,
  scopesGateways = false,
): Promise<{ warnings: string[]; notes: readonly string[] }> {
  const validationSettings = { ...settings, scopesGateways };
  const { problems, notes } = await validateFiles([], [{ file: 'a.yaml', text: yaml }], undefined, validationSettings);
  const missingWorkloads = problems.filter(({ code }) => code === 'WORKLOAD_NOT_FOUND');
  return { warnings: missingWorkloads.map(({ object, field, line }) => `${object} ${field} ${line}`), notes };
}

describe('validate of a Gateway whose selector selects no workload', () => {
  const missingSelector = ['Gateway shop/g spec.selector 9'];

  it.each([
    ['a gateway with the label of the charts', deployment('{istio: ingressgateway}', 'istio-system')],
    ['a Pod with the gateway template', deployment('{app: edge}', 'edge', '{inject.istio.io/templates: gateway}')],
  ])('reports the Gateway if the files contain %s', async (_, workload) => {
    expect((await validated(workload + gateway('{istio: ingresgateway}'))).warnings).toEqual(missingSelector);
  });

  it('reports the Gateway if another Gateway selects a gateway workload', async () => {
    const other = gateway('{app: edge}').replace('name: g,', 'name: other,');
    const { warnings } = await validated(deployment('{app: edge}', 'edge') + gateway('{app: egde}') + other);
    expect(warnings).toEqual(missingSelector);
  });

  it('reports the Gateway if gateways are scoped to their namespace and the workload is in another one', async () => {
    const yaml = deployment('{istio: edge}', 'edge') + deployment('{app: a}').replace('name: d,', 'name: e,');
    expect((await validated(yaml + gateway('{istio: edge}'))).warnings).toEqual([]);
    expect((await validated(yaml + gateway('{istio: edge}'), true)).warnings).toEqual([
      'Gateway shop/g spec.selector 14',
    ]);
  });
});

describe('validate of a Gateway with a selector', () => {
  it.each([
    ['if a workload of another namespace has the labels', '{istio: edge}', deployment('{istio: edge}', 'edge')],
    ['if it selects all workloads', '{}', deployment('{istio: other}')],
  ])('does not report the Gateway %s', async (_, selector, workload) => {
    expect((await validated(workload + gateway(selector))).warnings).toEqual([]);
  });

  it.each([
    ['applications only', '{app: web}'],
    ['the control plane', '{app: istiod, istio: pilot}'],
  ])('does not report the Gateway if the files contain %s, but notes that it is not checked', async (_, labels) => {
    const { warnings, notes } = await validated(deployment(labels) + gateway('{istio: ingressgateway}'));
    expect(warnings).toEqual([]);
    expect(notes).toContainEqual(expect.stringMatching(/^selectors of Gateway objects are not checked/));
  });
});

const entry = (labels: string): string =>
  object(
    'networking.istio.io/v1',
    'ServiceEntry',
    's',
    `{hosts: [vm.test], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], workloadSelector: {labels: ${labels}}}`,
  );
const machine = object('networking.istio.io/v1', 'WorkloadEntry', 'w', '{address: 10.0.0.1, labels: {app: vm}}');
const group = (labels: string): string =>
  object('networking.istio.io/v1', 'WorkloadGroup', 'w', `{metadata: {labels: ${labels}}, template: {}}`);

describe('validate of a ServiceEntry with a selector', () => {
  it.each([
    ['a WorkloadEntry', machine],
    ['a Deployment', deployment('{app: vm}')],
    ['a WorkloadGroup with other labels', machine + group('{app: other}')],
  ])('reports that no workload is selected if the files contain %s', async (_, workload) => {
    const { warnings } = await validated(entry('{app: mv}') + workload);
    expect(warnings).toEqual(['ServiceEntry shop/s spec.workloadSelector.labels 4']);
  });

  it.each([
    ['a WorkloadEntry has the labels', entry('{app: vm}') + machine],
    ['a Pod has the labels', entry('{app: vm}') + deployment('{app: vm}')],
    ['VMs of a WorkloadGroup will register with the labels', entry('{app: mv}') + machine + group('{app: mv}')],
    ['the files contain no workload', entry('{app: mv}')],
  ])('reports nothing if %s', async (_, yaml) => {
    expect((await validated(yaml)).warnings).toEqual([]);
  });
});

describe('a control plane', () => {
  const pod = object('v1', 'Pod', 'p', '{containers: [{name: c, image: x}]}');
  const warningsOf = (yaml: string, labels?: Readonly<Record<string, string>>, meshConfig = ''): string[] => {
    const plane = givenPlane(yaml, { meshConfig });
    if (labels !== undefined) {
      const metadata = { NAMESPACE: 'edge', LABELS: labels };
      plane.connect({ id: 'router~10.0.0.9~g.edge~edge.svc.cluster.local', cluster: 'edge', metadata }, []);
    }
    const { pilot_config_warnings: warnings = {} } = diagnosticsOf(plane.state, plane.resources.nodes);
    return Object.values(warnings).map(({ code, objects, field }) => `${code} ${objects} ${field}`);
  };

  it('reports a Gateway without a Pod or a connected gateway', () => {
    const missingSelector = ['WORKLOAD_NOT_FOUND Gateway/shop/g spec.selector'];
    expect(warningsOf(pod + gateway('{istio: edge}'))).toEqual(missingSelector);
    expect(warningsOf(pod + gateway('{istio: edge}'), { istio: 'other' })).toEqual(missingSelector);
    expect(warningsOf(pod + gateway('{istio: edge}'), { istio: 'edge' })).toEqual([]);
  });

  it('does not report a Gateway if Pods of some namespaces are not read', () => {
    const selectors = 'discoverySelectors: [{matchLabels: {mesh: a}}]';
    const labelled = 'apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {mesh: a}}\n---\n';
    expect(warningsOf(labelled + pod + gateway('{istio: edge}'), undefined, selectors)).toEqual([]);
  });
});
