/** Finds typing errors in a new user's directory with Deployments (issue 36, A4). */
import { expect, it } from 'vitest';
import { podsOfTemplates } from './pod-templates.ts';
import { validateFiles } from './validate-files.ts';

const workload = (kind: string, version: string): string => `
apiVersion: ${kind === 'CronJob' ? 'batch/v1' : 'apps/v1'}
kind: ${kind}
metadata: {name: reviews-${version}}
spec: {template: {metadata: {labels: {app: reviews, version: ${version}}}, spec: {serviceAccountName: reviews}}}
---`;
const service = (selector = 'reviews'): string => `
apiVersion: v1
kind: Service
metadata: {name: reviews}
spec: {selector: {app: ${selector}}, ports: [{port: 9080, name: http}]}
---`;
const rule = (version = 'v2'): string => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews}
spec: {host: reviews, subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: ${version}}}]}
---`;
const routes = (host = 'reviews', subset = 'v2'): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews}
spec: {hosts: [${host}], http: [{route: [{destination: {host: reviews, subset: ${subset}}}]}]}
---`;
const policy = (account = 'reviews'): string => `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: reviews}
spec: {rules: [{from: [{source: {principals: [cluster.local/ns/default/sa/${account}]}}]}]}
---`;
const workloads = workload('Deployment', 'v1') + workload('StatefulSet', 'v2');

async function problemsIn(...texts: string[]): Promise<string[]> {
  const { problems } = await validateFiles([], [{ file: 'shop.yaml', text: texts.join('') }]);
  return problems
    .filter(({ code = '' }) => /^[A-Z]/.test(code))
    .map(({ code, field, line, column }) => `${code} ${field} ${line}:${column}`);
}

it('validate accepts Services, subsets, routes and policies that match Deployments and StatefulSets', async () => {
  expect(await problemsIn(workloads, service(), rule(), routes(), policy())).toEqual([]);
});

it.each([
  ['the label of a subset', [service(), rule('v22'), routes()], /^SUBSET_WITHOUT_ENDPOINTS spec.subsets\[1\].labels /],
  ['the selector of a Service', [service('reveiws'), rule(), routes()], /^WORKLOAD_NOT_FOUND spec.selector /],
  ['the host of a VirtualService', [service(), rule(), routes('rewiews')], /^HOST_NOT_FOUND spec.hosts\[0\] /],
  ['a service account', [service(), policy('review')], /^SERVICE_ACCOUNT_NOT_FOUND .*principals\[0\] /],
] as const)('validate reports a typo in %s once, at its field', async (_, texts, expected) => {
  expect(await problemsIn(workloads, ...texts)).toEqual([expect.stringMatching(expected)]);
});

it('validate does not report an unused subset, because its workloads can be in other files', async () => {
  expect(await problemsIn(workloads, service(), rule('v9'), routes('reviews', 'v1'))).toEqual([]);
});

it('validate does not report missing workloads if the files contain none', async () => {
  expect(await problemsIn(service('reveiws'), rule('v9'), routes(), policy('review'))).toEqual([]);
});

it('validate reads the pod templates of all controllers, including nested Lists, and of no other document', () => {
  const controller = {
    ...{ apiVersion: 'v1', kind: 'ReplicationController', metadata: { name: 'old' } },
    spec: { template: { metadata: { labels: { app: 'old' } }, spec: {} } },
  };
  const listText = JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'List' },
    items: [
      {
        ...{ apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'night', namespace: 'shop' } },
        spec: { jobTemplate: { spec: { template: { metadata: { labels: { app: 'night' } }, spec: {} } } } },
      },
    ],
  });
  const invalidText =
    'apiVersion: apps/v1\nkind: Deployment\nmetadata: 3\n---\napiVersion: x/v1\nkind: Job\nmetadata: {name: a}';
  const nestedText = JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'List' },
    items: [
      { apiVersion: 'v1', kind: 'List', items: [{ apiVersion: 'v1', kind: 'List', items: [controller] }, 7, null] },
    ],
  });
  const template = { metadata: { labels: { app: 'typed' } }, spec: {} };
  const typed = JSON.stringify({
    ...{ apiVersion: 'apps/v1', kind: 'DeploymentList' },
    items: [{ metadata: { name: 'typed' }, spec: { template } }],
  });
  const pods = [workload('DaemonSet', 'v3'), listText, nestedText, typed, invalidText, '{kind: Deployment'].flatMap(
    (text) => podsOfTemplates(text),
  );
  expect(pods.map(({ kind, namespace, name, labels }) => [kind, namespace, name, labels.app])).toEqual([
    ['Pod', 'default', 'daemonset.reviews-v3', 'reviews'],
    ['Pod', 'shop', 'cronjob.night', 'night'],
    ['Pod', 'default', 'replicationcontroller.old', 'old'],
    ['Pod', 'default', 'deployment.typed', 'typed'],
  ]);
});
