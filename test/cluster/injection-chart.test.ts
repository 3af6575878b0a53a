/** The part of the chart for sidecar injection and validation, rendered by Helm and installed in a real API server. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as E from 'fp-ts/lib/Either.js';
import { afterAll, describe, expect, it } from 'vitest';
import type { ApiResource } from '../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { type WebhookEntry, webhookEntriesOf } from '../../src/injection/decision/webhook-entries.ts';
import { injectPod } from '../../src/injection/inject.ts';
import type { Pod } from '../../src/injection/pod/pod.ts';
import { decodeInjectionConfig, decodeInjectionValues } from '../../src/injection/settings.decode.ts';
import { readMeshConfig } from '../../src/model/mesh/mesh-config.decode.ts';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import { givenCluster } from './given-cluster.ts';
import { givenHelm } from './given-helm.ts';
import { of, writeKubeconfig } from './mesh-objects.ts';

const cluster = givenCluster();
const { run, render } = givenHelm();
const neverAborted = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), 'cp-injection-chart-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const image = ['--set', 'image.repository=registry.test/mesh/chartpilot'];
const admission = { group: 'admissionregistration.k8s.io', version: 'v1', namespaced: false } as const;
const mutating: ApiResource = {
  ...admission,
  plural: 'mutatingwebhookconfigurations',
  kind: 'MutatingWebhookConfiguration',
};
const validating: ApiResource = {
  ...admission,
  plural: 'validatingwebhookconfigurations',
  kind: 'ValidatingWebhookConfiguration',
};

interface Webhook extends WebhookEntry {
  readonly clientConfig: { readonly service: object; readonly caBundle?: string };
  readonly failurePolicy?: string;
  readonly reinvocationPolicy?: string;
  readonly matchConditions?: readonly { readonly expression: string }[];
}

const webhooksOf = (object: KubernetesObject): readonly Webhook[] => object.webhooks as readonly Webhook[];
const objectsOfKind = (objects: readonly KubernetesObject[], { kind }: ApiResource): KubernetesObject[] =>
  objects.filter((object) => object.kind === kind);
const entriesOf = (object: KubernetesObject): WebhookEntry[] =>
  webhooksOf(object).map(({ name, namespaceSelector, objectSelector }) => ({
    ...{ name, namespaceSelector, objectSelector },
  }));

describe('webhooks of the chart', () => {
  it.each([
    ['', false],
    ['', true],
    ['default', false],
    ['canary', true],
  ])(
    'select the same pods as the injector for the revision "%s" with enableNamespacesByDefault %s',
    async (revision, isEnabledByDefault) => {
      const values = `revision=${revision},sidecarInjectorWebhook.enableNamespacesByDefault=${isEnabledByDefault}`;
      const objects = objectsOfKind(await render('istio-system', ...image, '--set', values), mutating);
      expect(objects.map(({ metadata: { name, labels } }) => [name, labels?.['istio.io/rev']])).toEqual([
        [revision === 'canary' ? 'istio-sidecar-injector-canary' : 'istio-sidecar-injector', revision || 'default'],
      ]);
      expect(entriesOf(objects[0]!)).toEqual(webhookEntriesOf(revision, { injectsUnlabelled: isEnabledByDefault }));
    },
  );

  it('select pods with the tag for each revision tag, call its revision, and have unique names per namespace', async () => {
    const values = 'revision=canary,revisionTags={prod,default},sidecarInjectorWebhook.reinvocationPolicy=IfNeeded';
    const objects = objectsOfKind(await render('mesh', ...image, '--set', values), mutating);
    const service = { name: 'istiod-canary', namespace: 'mesh', path: '/inject', port: 443 };
    const summaries = objects.map((object) => {
      const { name, labels } = object.metadata;
      for (const webhook of webhooksOf(object)) {
        expect(webhook).toMatchObject({ clientConfig: { service }, failurePolicy: 'Fail' });
        expect(webhook).toMatchObject({ reinvocationPolicy: 'IfNeeded', sideEffects: 'None' });
        expect(webhook.clientConfig).not.toHaveProperty('caBundle');
      }
      expect(labels).toMatchObject({ 'istio.io/rev': 'canary' });
      return [name, labels?.['istio.io/tag'], entriesOf(object)];
    });
    expect(summaries).toEqual([
      ['istio-sidecar-injector-canary-mesh', undefined, webhookEntriesOf('canary')],
      ['istio-revision-tag-prod-mesh', 'prod', webhookEntriesOf('prod')],
      ['istio-revision-tag-default-mesh', 'default', webhookEntriesOf('default')],
    ]);
  });

  it.each(['revisionTags={default}', 'revision=canary,revisionTags={canary}'])(
    'are not rendered with %s, because pods would be injected twice',
    async (values) => {
      await expect(render('istio-system', ...image, '--set', values)).rejects.toThrow('is the revision itself');
    },
  );

  it('allow the policy Fail for validation only if the values do not specify Ignore', async () => {
    for (const [policy, annotations] of [
      ['', undefined],
      ['Ignore', { 'chartpilot/failure-policy': 'keep' }],
      ['Fail', undefined],
    ] as const) {
      const objects = objectsOfKind(
        await render('istio-system', ...image, '--set', `validation.failurePolicy=${policy}`),
        validating,
      );
      expect(objects.map(({ metadata }) => metadata.annotations)).toEqual([annotations, annotations]);
      for (const object of objects) expect(webhooksOf(object)).toMatchObject([{ failurePolicy: policy || 'Ignore' }]);
    }
  });

  it.each([
    ['if they are disabled', 'sidecarInjectorWebhook.enabled=false,validation.enabled=false'],
    ['if no authority signs their certificate', 'authority.selfSigned=false'],
  ])('are absent %s', async (_, values) => {
    const objects = await render('istio-system', ...image, '--set', values);
    expect(objects.filter(({ kind }) => kind?.endsWith('WebhookConfiguration'))).toEqual([]);
    expect(objects.filter(({ metadata: { name } }) => name.startsWith('istio-sidecar-injector'))).toEqual([]);
  });
});

describe('the ConfigMaps of the chart', () => {
  const dataOf = (objects: readonly KubernetesObject[], name: string): Record<string, string> =>
    objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name)!.data as never;

  it("configure the injector with the chart's agent image and the address of its control plane revision", async () => {
    const settings = [
      ...['revision=canary,image.tag=1.5,image.pullSecrets={pull},clusterID=west,domain=west.local'],
      'global.proxy.logLevel=debug,cni.enabled=true,sidecarInjectorWebhook.templates.extra.spec.hostname=h',
    ];
    const objects = await render('mesh', ...image, '--set', settings.join(','));
    const injector = dataOf(objects, 'istio-sidecar-injector-canary');
    const config = decodeInjectionConfig(injector.config!);
    const values = decodeInjectionValues(injector.values!);
    const mesh = readMeshConfig('mesh', dataOf(objects, 'istio-canary').mesh!);
    if (E.isLeft(config) || E.isLeft(values) || E.isLeft(mesh)) throw new Error(JSON.stringify([config, values, mesh]));
    expect(config.right.warnings).toEqual([]);
    expect(config.right.settings.templates).toEqual({ extra: { spec: { hostname: 'h' } } });
    expect(mesh.right.mesh.defaultConfig.discoveryAddress).toBe('istiod-canary.mesh.svc:15012');
    const pod: Pod = {
      metadata: { name: 'cart', annotations: { 'inject.istio.io/templates': 'sidecar,extra' } },
      spec: { containers: [{ name: 'cart', image: 'cart' }] },
    };
    const injected = injectPod({
      ...{ pod, namespace: 'shop', mesh: mesh.right.mesh, proxyConfigFor: () => mesh.right.mesh.defaultConfig },
      settings: { config: config.right.settings, values: values.right, revision: 'canary' },
    });
    if (E.isLeft(injected)) throw new Error(JSON.stringify(injected.left));
    const { spec } = injected.right;
    expect(spec).toMatchObject({ hostname: 'h', imagePullSecrets: [{ name: 'pull' }] });
    const proxy = spec.initContainers!.find(({ name }) => name === 'istio-proxy')!;
    expect(proxy.image).toBe('registry.test/mesh/chartpilot:1.5');
    expect(proxy.args).toEqual(expect.arrayContaining(['$(POD_NAMESPACE).svc.west.local', '--proxyLogLevel=debug']));
    expect(proxy.env).toEqual(
      expect.arrayContaining([
        { name: 'CA_ADDR', value: 'istiod-canary.mesh.svc:15012' },
        { name: 'ISTIO_META_CLUSTER_ID', value: 'west' },
        { name: 'PROXY_CONFIG', value: '{"discoveryAddress":"istiod-canary.mesh.svc:15012"}' },
      ]),
    );
    // With istio-cni no container needs NET_ADMIN.
    expect(spec.initContainers!.map(({ name }) => name)).toEqual(['istio-validation', 'istio-proxy']);
  });

  it.each([
    ['image.repository=localhost/chartpilot/discovery,image.tag=1.5', 'localhost/chartpilot/agent:1.5'],
    ['image.repository=discovery', 'docker.io/library/agent:0.1.0'],
    ['image.repository=registry.test/own', 'registry.test/own:0.1.0'],
    ['image.repository=a.test/discovery,agentImage.repository=b.test/x/proxy', 'b.test/x/proxy:0.1.0'],
    ['image.repository=a.test/discovery,agentImage.tag=2.0.0', 'a.test/agent:2.0.0'],
    ['image.repository=a.test/discovery,global.hub=c.test,global.tag=3.0.0,global.proxy.image=p', 'c.test/p:3.0.0'],
  ])('specify with %s the image %s for sidecars', async (values, expected) => {
    const data = dataOf(await render('mesh', '--set', values), 'istio-sidecar-injector');
    const { global } = JSON.parse(data.values!) as { global: Record<string, string> & { proxy: { image: string } } };
    expect(`${global.hub}/${global.proxy.image}:${global.tag}`).toBe(expected);
  });

  it("keep the user's mesh settings, even another address of the control plane", async () => {
    const meshOf = async (values: string) => {
      const read = readMeshConfig('mesh', dataOf(await render('mesh', ...image, '--set', values), 'istio').mesh!);
      return E.isRight(read) ? read.right.mesh : undefined;
    };
    expect((await meshOf('authority.selfSigned=false'))?.defaultConfig.discoveryAddress).toBe('istiod.mesh.svc:15010');
    const userSettings = 'meshConfig.trustDomain=td.test,meshConfig.defaultConfig.discoveryAddress=other:15012';
    expect(await meshOf(userSettings)).toMatchObject({
      trustDomain: 'td.test',
      defaultConfig: { discoveryAddress: 'other:15012' },
    });
  });
});

describe('an upgrade of the Helm release', () => {
  const revision = `r${crypto.randomUUID().slice(0, 8)}`;
  const values = [...image, '--set', `revision=${revision},createNamespace=false`];

  it.each([
    // Helm's default for a new release; the long form also uses Helm 3's client-side apply.
    ['server-side', 'true'],
    ...sized({ short: [], full: [['client-side', 'false']] }),
  ])('keeps the CA bundles and the failure policy that the control plane has set (%s apply)', async (_, serverSide) => {
    const kubeconfig = join(folder, 'kubeconfig');
    writeKubeconfig(kubeconfig, cluster);
    const { namespace } = cluster;
    const release = `mesh-${serverSide}`;
    const helmTarget = ['--namespace', namespace, '--kubeconfig', kubeconfig];
    const names = {
      mutating: `istio-sidecar-injector-${revision}-${namespace}`,
      validating: `istio-validator-${revision}-${namespace}`,
    };
    const webhooks = async (resource: ApiResource, name: string): Promise<readonly Webhook[]> =>
      webhooksOf(await cluster.admin.request({ method: 'GET', resource, name }, neverAborted));
    const setBy = async (resource: ApiResource, name: string, changedFields: object): Promise<void> => {
      const entries = (await webhooks(resource, name)).map((entry) => ({
        name: entry.name,
        ...{ admissionReviewVersions: ['v1'], sideEffects: 'None' },
        clientConfig: { caBundle: btoa('-----BEGIN CERTIFICATE-----'), service: entry.clientConfig.service },
        ...changedFields,
      }));
      const body = { apiVersion: 'admissionregistration.k8s.io/v1', kind: resource.kind, webhooks: entries };
      const query = { fieldManager: 'control-plane', force: 'true' };
      await cluster.admin.request({ method: 'PATCH', patch: 'apply', resource, name, body, query }, neverAborted);
    };
    // Other test files define the kinds. The API server validates what Helm sends, so Helm's own validation is disabled to save time.
    const flags = ['deploy/chart', `--server-side=${serverSide}`, '--skip-crds', '--disable-openapi-validation'];
    const upgrade = (...extraFlags: string[]): Promise<string> =>
      run('upgrade', release, ...flags, ...helmTarget, ...values, ...extraFlags);

    await run('install', release, ...flags, ...helmTarget, ...values);
    try {
      const [policy] = await webhooks(validating, names.validating);
      expect(policy?.failurePolicy).toBe('Ignore');
      await upgrade('--set', 'podLabels.a=b');
      // No rejection was confirmed yet: the API server's default, Fail, would reject every object.
      expect((await webhooks(validating, names.validating))[0]?.failurePolicy).toBe('Ignore');
      await setBy(mutating, names.mutating, {});
      await setBy(validating, names.validating, { failurePolicy: 'Fail' });
      await upgrade('--set', 'podLabels.a=c');
      const webhooksAfter = [
        ...(await webhooks(mutating, names.mutating)),
        ...(await webhooks(validating, names.validating)),
      ];
      expect(webhooksAfter.map(({ clientConfig }) => clientConfig.caBundle)).toEqual(
        webhooksAfter.map(() => btoa('-----BEGIN CERTIFICATE-----')),
      );
      expect(webhooksAfter.map(({ failurePolicy }) => failurePolicy)).toEqual(webhooksAfter.map(() => 'Fail'));
    } finally {
      await run('uninstall', release, ...helmTarget);
    }
  });
});

describe('a cluster in which no replica can be called', () => {
  it('creates pods of the control plane, and rejects pods that would lack their sidecar', async () => {
    const kubeconfig = join(folder, 'kubeconfig-of-outage');
    writeKubeconfig(kubeconfig, cluster);
    const { namespace } = cluster;
    const revision = `o${crypto.randomUUID().slice(0, 8)}`;
    const helmTarget = ['--namespace', namespace, '--kubeconfig', kubeconfig];
    const flags = ['--skip-crds', '--disable-openapi-validation', '--set', `revision=${revision}`];
    await run('install', 'outage', 'deploy/chart', ...flags, ...helmTarget, ...image);
    try {
      // Without the Service, the API server cannot send requests.
      await cluster.delete(of.services, `istiod-${revision}`);
      const metadata = { name: namespace, labels: { 'istio.io/rev': revision } };
      await cluster.admin.request(
        { method: 'PATCH', resource: of.namespaces, name: namespace, body: { metadata } },
        neverAborted,
      );
      const create = (name: string, labels: object) =>
        cluster.admin.request(
          {
            ...{ method: 'POST', resource: of.pods, namespace, query: { dryRun: 'All' } },
            body: {
              ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, labels } },
              spec: { serviceAccountName: `istiod-${revision}`, containers: [{ name: 'a', image: 'a' }] },
            },
          },
          neverAborted,
        );
      await eventually('the webhook is called', async () => {
        await expect(create('cart', { app: 'cart' })).rejects.toThrow('rev.namespace.sidecar-injector.istio.io');
        return true;
      });
      await expect(create('cart', { app: 'cart', 'sidecar.istio.io/inject': 'false' })).resolves.toBeDefined();
      await expect(create('istiod', { app: 'istiod' })).resolves.toBeDefined();
    } finally {
      await run('uninstall', 'outage', ...helmTarget);
    }
  });
});
