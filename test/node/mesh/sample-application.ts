/** The test application on a node: it responds to requests, and sends requests on a test's order. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { transformSync } from 'esbuild';
import { agentImage } from '../mesh-image.ts';

const source = readFileSync(join(import.meta.dirname, 'sample-program.ts'), 'utf8');
const program = transformSync(source, { loader: 'ts' }).code;

export interface ApplicationOptions {
  readonly replicas?: number;
  readonly namespace?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Fields of the Service's specification. */
  readonly service?: object;
  /** Fields of the container. */
  readonly container?: object;
  /** Containers in addition to `app`. */
  readonly otherContainers?: readonly object[];
}

/** Small resource requests in each pod's annotations, because a test node has two processors. */
const resources = { 'sidecar.istio.io/proxyCPU': '10m', 'sidecar.istio.io/proxyMemory': '64Mi' };

/** A ServiceAccount, a Service at port 80 and a Deployment with the same name, as YAML. */
export function application(name: string, options: ApplicationOptions = {}): string {
  const { replicas = 1, namespace, annotations = {}, service = {}, container = {}, otherContainers = [] } = options;
  const metadata = { name, ...(namespace === undefined ? {} : { namespace }) };
  const objects = [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata },
      spec: { selector: { app: name }, ports: [{ name: 'http', port: 80, targetPort: 8080 }], ...service },
    },
    {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata },
      spec: {
        ...{ replicas, selector: { matchLabels: { app: name } } },
        strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        template: {
          metadata: { labels: { app: name }, annotations: { ...resources, ...annotations } },
          spec: {
            ...{ serviceAccountName: name, terminationGracePeriodSeconds: 20 },
            containers: [
              {
                ...{ name: 'app', image: agentImage, imagePullPolicy: 'Never' },
                command: ['node', '--input-type=module', '--eval', program],
                ...{ ports: [{ containerPort: 8080 }], securityContext: { runAsUser: 1000 } },
                // Next to ten other programs a response takes longer than the default timeout of one second.
                readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1, timeoutSeconds: 20 },
                lifecycle: { preStop: { sleep: { seconds: 3 } } },
                ...container,
              },
              ...otherContainers,
            ],
          },
        },
      },
    },
  ];
  return objects.map((object) => JSON.stringify(object)).join('\n---\n');
}
