/** Circuit breaking and failover between localities. */

import { readyPods } from '../workloads.ts';
import type { Task, TaskContext } from './context.ts';
import { countOf, countsText } from './context.ts';

const circuitBreaker = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: httpbin }
spec:
  host: httpbin
  trafficPolicy:
    connectionPool:
      tcp: { maxConnections: 1 }
      http: { http1MaxPendingRequests: 1, maxRequestsPerConnection: 1 }
    outlierDetection: { consecutive5xxErrors: 1, interval: 1s, baseEjectionTime: 3m, maxEjectionPercent: 100 }
`;

/** Sends requests that take 0.2 s, so that all connections have one in flight simultaneously. */
async function load(tasks: TaskContext, connections: number, requests: number, format?: string) {
  const parallel = ['--parallel', '--parallel-immediate', '--parallel-max', String(connections)];
  return tasks.statuses(`http://httpbin:8000/delay/0.2?u=[1-${requests}]`, parallel, format);
}

export const circuitBreaking: Task = {
  name: 'circuit-breaking',
  page: 'tasks/traffic-management/circuit-breaking',
  needs: ['curl', 'httpbin'],
  async run(tasks) {
    const expectOutcome = (
      description: string,
      expected: string,
      connections: number,
      isExpected: (counts: Readonly<Record<string, number>>) => boolean,
    ) =>
      tasks.converges(description, expected, () => load(tasks, connections, 10 * connections), {
        isExpected,
        describe: countsText,
      });
    await expectOutcome('4 connections without a limit', '200: 40', 4, (counts) => counts['200'] === 40);
    await tasks.apply(circuitBreaker);
    await tasks.status('1 request', 200, () => tasks.curl(['http://httpbin:8000/get']));
    await expectOutcome(
      '4 connections',
      'some 503',
      4,
      ({ 200: ok = 0, 503: refusedCount = 0 }) => ok > 0 && refusedCount > 0 && ok + refusedCount === 40,
    );
    await expectOutcome('1 connection', '200: 10', 1, (counts) => counts['200'] === 10);
    // The client's Envoy marks requests that it did not send.
    const overloadCounts = await load(tasks, 4, 40, '%{http_code} overloaded=%header{x-envoy-overloaded}');
    const { '503 overloaded=true': refusedCount = 0, '200 overloaded=': acceptedCount = 0 } = overloadCounts;
    tasks.record(
      'header x-envoy-overloaded',
      countsText(overloadCounts),
      'in each 503',
      refusedCount > 0 && refusedCount + acceptedCount === 40,
    );
  },
};

/** The readiness probe of an injected pod fails four times, every 15 s, and the endpoint is removed. */
const unreadyLimitMs = 120_000;
/** The first failed request ejects the endpoint, before the kubelet detects that the pod is not ready. */
const ejectionLimitMs = 30_000;

/** Nearest first, as seen by a client in region1/zone1. */
const localities = ['region1.zone1', 'region1.zone2', 'region2.zone3', 'region3.zone4'];
const namespace = 'sample';

const helloworldAt = (locality: string): string => `
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: helloworld-${locality} }
spec:
  selector: { matchLabels: { app: helloworld-${locality} } }
  template:
    metadata: { labels: { app: helloworld-${locality}, service: helloworld, istio-locality: ${locality} } }
    spec:
      containers:
        - name: helloworld
          image: registry.istio.io/release/examples-helloworld-v1:1.0
          imagePullPolicy: IfNotPresent
          env: [{ name: SERVICE_VERSION, value: ${locality} }]
          ports: [{ containerPort: 5000 }]
`;

const manifests = `
{ apiVersion: v1, kind: Namespace, metadata: { name: ${namespace}, labels: { istio-injection: enabled } } }
---
apiVersion: v1
kind: Service
metadata: { name: helloworld }
spec: { selector: { service: helloworld }, ports: [{ name: http, port: 5000 }] }
${localities.map(helloworldAt).join('')}
`;

/**
 * By default, Envoy ejects at most 10 % of the endpoints, and so none of four: traffic then fails over when the kubelet detects that the pod is not
 * ready. Warning EJECTION_LIMITS_FAILOVER reports that and names the field.
 */
const failover = (ejection = ''): string => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: helloworld }
spec:
  host: helloworld.${namespace}.svc.cluster.local
  trafficPolicy:
    connectionPool: { http: { maxRequestsPerConnection: 1 } }
    loadBalancer:
      simple: ROUND_ROBIN
      localityLbSetting: { enabled: true, failover: [{ from: region1, to: region2 }] }
    outlierDetection: { consecutive5xxErrors: 1, interval: 1s, baseEjectionTime: 1m${ejection} }
`;

const distribution = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: helloworld }
spec:
  host: helloworld.${namespace}.svc.cluster.local
  trafficPolicy:
    loadBalancer:
      localityLbSetting:
        enabled: true
        distribute: [{ from: region1/zone1/*, to: { "region1/zone1/*": 70, "region1/zone2/*": 20, "region3/zone4/*": 10 } }]
    outlierDetection: { consecutive5xxErrors: 100, interval: 1s, baseEjectionTime: 1m }
`;

export const localityLoadBalancing: Task = {
  name: 'locality-load-balancing',
  page: 'tasks/traffic-management/locality-load-balancing/failover',
  needs: ['curl'],
  async run(tasks) {
    await tasks.apply(manifests, namespace);
    await Promise.all(localities.map((locality) => readyPods(tasks.node, `helloworld-${locality}`, 1, namespace)));
    const requests = 40;
    const versions = async () => {
      const bodies = await tasks.bodies(`http://helloworld.${namespace}:5000/hello?u=[1-${requests}]`);
      return countOf(bodies.map((body) => /version: ([\w.]+)/.exec(body)?.[1] ?? body));
    };
    await tasks.converges('without a rule', 'all localities', versions, {
      isExpected: (counts) =>
        Object.keys(counts).join() !== '' && Object.keys(counts).every((key) => localities.includes(key)),
      describe: countsText,
    });
    await tasks.apply(distribution, namespace);
    await tasks.converges('distribute 70, 20, 10', '28 ± 12, 8 ± 8, 4 ± 4', versions, {
      isExpected: ({ 'region1.zone1': nearCount = 0, 'region2.zone3': none = 0, 'region3.zone4': farCount = 0 }) =>
        Math.abs(nearCount - 28) <= 12 && none === 0 && farCount > 0 && farCount <= 12,
      describe: countsText,
    });
    const expectLocality = (description: string, locality: string, limitMs?: number) =>
      tasks.converges(description, `${locality}: ${requests}`, versions, {
        isExpected: (counts) => counts[locality] === requests,
        describe: countsText,
        ...(limitMs !== undefined && { limitMs }),
      });
    const [nearest = '', sameRegion = '', ruleRegion = '', last = ''] = localities;
    await tasks.apply(failover(), namespace);
    await expectLocality('failover rule', nearest);
    await drain(tasks, nearest);
    await expectLocality(`${nearest} is drained`, sameRegion, unreadyLimitMs);
    await tasks.apply(failover(', maxEjectionPercent: 100'), namespace);
    await expectLocality('maxEjectionPercent: 100', sameRegion);
    await drain(tasks, sameRegion);
    await expectLocality(`${sameRegion} is drained`, ruleRegion, ejectionLimitMs);
    await drain(tasks, ruleRegion);
    await expectLocality(`${ruleRegion} is drained`, last, ejectionLimitMs);
  },
};

/** Makes a pod's sidecar refuse connections, as the page does. */
async function drain(tasks: TaskContext, locality: string): Promise<void> {
  const command = ['pilot-agent', 'request', 'POST', 'drain_listeners'];
  const { code, stdout } = await tasks.exec(`helloworld-${locality}`, command, { namespace, container: 'istio-proxy' });
  if (code !== 0) throw new Error(`drain_listeners of ${locality}: exit code ${code}, ${stdout}`);
}
