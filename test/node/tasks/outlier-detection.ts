/** Outlier detection: the client's Envoy ejects an endpoint that fails. */
import { podsOf, readyPods } from '../workloads.ts';
import { countOf, countsText, type Task, type TaskContext } from './context.ts';
import { curlImage, httpbinImage } from './sample-images.ts';

/** The sidecar of the client reports the statistics of its clusters, as on the page. */
const manifests = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: outlier-client }
spec:
  selector: { matchLabels: { app: outlier-client } }
  template:
    metadata:
      labels: { app: outlier-client }
      annotations: { proxy.istio.io/config: "proxyStatsMatcher: { inclusionPrefixes: [cluster.outbound] }" }
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{ name: curl, image: "${curlImage}", command: [/bin/sleep, infinity] }]
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: httpbin-failing }
spec:
  selector: { matchLabels: { app: httpbin, version: failing } }
  template:
    metadata: { labels: { app: httpbin, version: failing } }
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - { name: httpbin, image: "${httpbinImage}", command: [node, /programs/failing.ts], ports: [{ containerPort: 8080 }] }
`;

const outlierDetection = (maxEjectionPercent: number): string => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: httpbin }
spec:
  host: httpbin
  trafficPolicy:
    outlierDetection: { consecutive5xxErrors: 1, interval: 1s, baseEjectionTime: 3m, maxEjectionPercent: ${maxEjectionPercent} }
`;

const requests = 40;

interface Batch {
  /** Responses by status. */
  readonly counts: Readonly<Record<string, number>>;
  /** Requests that the failing endpoint received. */
  readonly failedHere: number;
  /** Statistics `ejections_…` of the client's Envoy after the requests. */
  readonly ejections: Readonly<Record<string, number>>;
}

export const outlierDetectionTask: Task = {
  name: 'outlier-detection',
  page: 'tasks/traffic-management/circuit-breaking',
  needs: ['httpbin'],
  async run(tasks) {
    await tasks.apply(manifests);
    await Promise.all([readyPods(tasks.node, 'httpbin', 2), readyPods(tasks.node, 'outlier-client')]);
    let batches = 0;
    const expectBatch = (description: string, documented: string, isExpected: (batch: Batch) => boolean) =>
      tasks.converges(description, documented, () => sendBatch(tasks, batches++), { isExpected, describe });
    const reachesFailing = ({ counts, failedHere }: Batch): boolean =>
      failedHere > 0 && counts['500'] === failedHere && counts['200'] === requests - failedHere;

    await expectBatch('without a rule', 'some 500', reachesFailing);
    await tasks.apply(outlierDetection(0));
    await expectBatch(
      'maxEjectionPercent: 0',
      'some 500, ejections_overflow, no ejection',
      (batch) =>
        reachesFailing(batch) &&
        Number(batch.ejections.ejections_overflow) > 0 &&
        batch.ejections.ejections_active === 0 &&
        batch.ejections.ejections_enforced_total === 0,
    );
    await tasks.apply(outlierDetection(50));
    await expectBatch(
      'maxEjectionPercent: 50',
      `200: ${requests}, at the failing endpoint: 0, ejections_active: 1`,
      ({ counts, failedHere, ejections }) =>
        counts['200'] === requests && failedHere === 0 && ejections.ejections_active === 1,
    );
    await tasks.delete('DestinationRule', 'httpbin');
    await expectBatch('rule removed', 'some 500', reachesFailing);
  },
};

/** Sends requests one after the other, each with the number of the batch in its path. */
async function sendBatch(tasks: TaskContext, batch: number): Promise<Batch> {
  const path = `/get?batch=${batch}.`;
  const url = `http://httpbin:8000${path}[1-${requests}]`;
  const curl = ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}\\n', url];
  const { stdout } = await tasks.exec('outlier-client', curl, { container: 'curl' });
  return {
    counts: countOf(stdout.trim().split('\n')),
    failedHere: await requestsOfFailing(tasks, path),
    ejections: await ejectionsOf(tasks),
  };
}

async function requestsOfFailing(tasks: TaskContext, path: string): Promise<number> {
  const pods = await podsOf(tasks.node, 'httpbin');
  const failing = pods.find(({ metadata }) => metadata.labels?.version === 'failing');
  const log = await tasks.logs(failing!.metadata.name, 'httpbin');
  return log.split('\n').filter((line) => line.includes(path)).length;
}

async function ejectionsOf(tasks: TaskContext): Promise<Record<string, number>> {
  const command = ['pilot-agent', 'request', 'GET', 'stats?filter=outlier_detection'];
  const { stdout } = await tasks.exec('outlier-client', command, { container: 'istio-proxy' });
  const lines = stdout.split('\n').filter((line) => line.includes('.outbound|8000||httpbin.'));
  const values = lines.flatMap((line) => {
    const [, name, value] = /\.outlier_detection\.(\w+): (\d+)$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, Number(value)] as const];
  });
  return Object.fromEntries(values);
}

function describe({ counts, failedHere, ejections }: Batch): string {
  const names = ['ejections_active', 'ejections_enforced_total', 'ejections_overflow'];
  const reported = names.flatMap((name) => (name in ejections ? [`${name}: ${ejections[name]}`] : []));
  return [countsText(counts), `at the failing endpoint: ${failedHere}`, ...reported].join(', ');
}
