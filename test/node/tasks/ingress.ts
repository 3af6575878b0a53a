/** Requests from outside the cluster, through a Gateway of Istio and one of the Gateway API. */
import { resourceOf } from '../../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../../src/discovery/kubernetes/api-server.ts';
import { eventually } from '../../harness/eventually.ts';
import { network } from '../node-configuration.ts';
import { hasCondition } from '../resources.ts';
import { readyPods } from '../workloads.ts';
import { countOf, countsText, type Task, type TaskContext } from './context.ts';

const ingressNamespace = 'istio-ingress';

/** Follows Istio's page "Installing Gateways": the injector completes the container. */
const ingressGateway = `
{ apiVersion: v1, kind: Namespace, metadata: { name: ${ingressNamespace} } }
---
apiVersion: v1
kind: Service
metadata: { name: istio-ingressgateway }
spec:
  type: NodePort
  selector: { istio: ingressgateway }
  ports: [{ name: http2, port: 80, targetPort: 8080 }]
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: istio-ingressgateway }
spec:
  selector: { matchLabels: { istio: ingressgateway } }
  template:
    metadata:
      annotations: { inject.istio.io/templates: gateway }
      labels: { app: istio-ingressgateway, istio: ingressgateway, sidecar.istio.io/inject: 'true' }
    spec:
      containers: [{ name: istio-proxy, image: auto }]
`;

const neverAborted = new AbortController().signal;

async function read(tasks: TaskContext, kind: 'Service' | 'KubernetesGateway', name: string, namespace: string) {
  const resource = resourceOf(kind);
  return tasks.node.cluster.admin.request({ method: 'GET', resource, namespace, name }, neverAborted);
}

/**
 * Starts the gateway.
 * @returns its URL on the node
 */
async function startIngressGateway(tasks: TaskContext): Promise<string> {
  await tasks.apply(ingressGateway, ingressNamespace);
  await readyPods(tasks.node, 'istio-ingressgateway', 1, ingressNamespace);
  const service = await read(tasks, 'Service', 'istio-ingressgateway', ingressNamespace);
  const [port] = (service.spec as { ports: readonly { nodePort: number }[] }).ports;
  return `http://${network.node}:${port!.nodePort}`;
}

const httpbinGateway = (hosts: string): string => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: httpbin-gateway }
spec:
  selector: { istio: ingressgateway }
  servers: [{ port: { number: 80, name: http, protocol: HTTP }, hosts: ['${hosts}'] }]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: httpbin }
spec:
  hosts: ['${hosts}']
  gateways: [httpbin-gateway]
  http:
    - match: [{ uri: { prefix: /status } }, { uri: { prefix: /delay } }]
      route: [{ destination: { port: { number: 8000 }, host: httpbin } }]
`;

const hostHeader = ['-H', 'Host: httpbin.example.com'];
const titleOf = (html: string): string => /<title>(.*)<\/title>/.exec(html)?.[1] ?? 'no title';
const title = 'Simple Bookstore App';

export const ingressGateways: Task = {
  name: 'ingress-gateway',
  page: 'tasks/traffic-management/ingress/ingress-control',
  needs: ['curl', 'httpbin', 'helloworld', 'bookinfo'],
  async run(tasks) {
    const url = await startIngressGateway(tasks);
    await tasks.apply(httpbinGateway('httpbin.example.com'));
    const get = (path: string, args: readonly string[] = []) => tasks.curlFromNode([...args, `${url}${path}`]);
    await tasks.status('/status/200 of httpbin.example.com', 200, () => get('/status/200', hostHeader));
    await tasks.status('/headers, which has no route', 404, () => get('/headers', hostHeader));
    await tasks.status('another host', 404, () => get('/status/200'));
    await tasks.delete('VirtualService', 'httpbin');
    await tasks.delete('Gateway', 'httpbin-gateway');
    await tasks.applySample('helloworld/helloworld-gateway.yaml');
    const versions = async () => {
      const sentRequests = Array.from({ length: 10 }, () => get('/hello'));
      return countOf((await Promise.all(sentRequests)).map(({ body }) => /version: (\w+)/.exec(body)?.[1] ?? 'none'));
    };
    await tasks.converges('versions of helloworld', 'v1 and v2', versions, {
      isExpected: ({ v1 = 0, v2 = 0 }) => v1 > 0 && v2 > 0 && v1 + v2 === 10,
      describe: countsText,
    });
    await tasks.applySample('bookinfo-networking/bookinfo-gateway.yaml');
    await tasks.converges('title of /productpage', title, async () => titleOf((await get('/productpage')).body), {
      isExpected: (pageTitle) => pageTitle === title,
    });
    await tasks.status('/details/0 of bookinfo, which has no route', 404, () => get('/details/0'));
  },
};

const addressOf = ({ status }: KubernetesObject): string => {
  const { addresses = [] } = (status ?? {}) as { addresses?: readonly { value: string }[] };
  return addresses[0]?.value ?? 'none';
};

const httpbinRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: httpbin }
spec:
  parentRefs: [{ name: bookinfo-gateway }]
  hostnames: [httpbin.example.com]
  rules:
    - matches: [{ path: { type: PathPrefix, value: /status } }, { path: { type: PathPrefix, value: /delay } }]
      backendRefs: [{ name: httpbin, port: 8000 }]
`;

export const gatewayApiIngress: Task = {
  name: 'ingress-gateway-api',
  page: 'tasks/traffic-management/ingress/gateway-api',
  needs: ['curl', 'httpbin', 'bookinfo'],
  async run(tasks) {
    const name = 'bookinfo-gateway';
    await tasks.applySample('bookinfo-gateway-api/bookinfo-gateway.yaml');
    // Sets the annotation like `kubectl annotate`, because the cluster has no load balancer.
    await tasks.node.cluster.patch(resourceOf('KubernetesGateway'), name, {
      metadata: { annotations: { 'networking.istio.io/service-type': 'ClusterIP' } },
    });
    const read_ = () => read(tasks, 'KubernetesGateway', name, tasks.namespace);
    await tasks.converges('Gateway is programmed', 'an address', read_, {
      isExpected: (gateway) => hasCondition(gateway, 'Programmed') && addressOf(gateway) !== 'none',
      describe: addressOf,
    });
    const service = await eventually('the gateway has a Service', () =>
      read(tasks, 'Service', `${name}-istio`, tasks.namespace),
    );
    const url = `http://${(service.spec as { clusterIP: string }).clusterIP}`;
    const get = (path: string, args: readonly string[] = []) => tasks.curlFromNode([...args, `${url}${path}`]);
    await tasks.converges('title of /productpage', title, async () => titleOf((await get('/productpage')).body), {
      isExpected: (pageTitle) => pageTitle === title,
    });
    await tasks.status('/details/0, which has no route', 404, () => get('/details/0'));
    await tasks.apply(httpbinRoute);
    await tasks.status('/status/200 of httpbin.example.com', 200, () => get('/status/200', hostHeader));
    await tasks.status('/headers, which has no route', 404, () => get('/headers', hostHeader));
    await tasks.delete('Gateway', name);
    await tasks.converges(
      'the Service after the Gateway is deleted',
      'deleted',
      () => serviceState(tasks, `${name}-istio`),
      {
        isExpected: (state) => state === 'deleted',
      },
    );
  },
};

async function serviceState(tasks: TaskContext, name: string): Promise<string> {
  const { items } = await tasks.node.cluster.admin.list(
    resourceOf('Service'),
    { namespace: tasks.namespace, limit: 500 },
    neverAborted,
  );
  return items.some(({ metadata }) => metadata.name === name) ? 'exists' : 'deleted';
}
