/** Manifests of the samples by path: Istio's published files from a folder, or chartpilot's objects with the same names, labels and ports. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { curlImage, httpbinImage } from './sample-images.ts';

const hub = 'registry.istio.io/release';
const istio = 'networking.istio.io/v1';

export class SampleFiles {
  readonly #folder: string | undefined;

  /** @param folder folder of Istio's samples (default: chartpilot's objects) */
  constructor(folder?: string) {
    this.#folder = folder;
  }

  /** @param path such as `httpbin/httpbin.yaml` */
  read(path: string): string {
    if (this.#folder !== undefined) return readFileSync(join(this.#folder, path), 'utf8');
    const objects = ownManifests[path];
    if (objects === undefined) throw new Error(`no such sample: ${path}`);
    return objects.map((object) => stringify(object)).join('---\n');
  }
}

interface Workload {
  readonly app: string;
  readonly version?: string;
  readonly image: string;
  readonly port?: number;
  readonly account?: string;
  readonly command?: readonly string[];
}

const service = (app: string, port: number, targetPort = port, selector: object = { app }, name = app): object => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, labels: { app, service: app } } },
  spec: { selector, ports: [{ name: 'http', port, targetPort }] },
});

const account = (name: string): object => ({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } });

/** A Deployment of one pod. */
export function deployment({ app, version, image, port, account: serviceAccountName, command }: Workload): object {
  const labels = { app, ...(version && { version }) };
  const container = { name: app, image, imagePullPolicy: 'IfNotPresent', ...(command && { command }) };
  const ports = port === undefined ? [] : [{ containerPort: port }];
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: version ? `${app}-${version}` : app, labels } },
    spec: {
      ...{ replicas: 1, selector: { matchLabels: labels } },
      template: {
        metadata: { labels },
        spec: { ...(serviceAccountName && { serviceAccountName }), containers: [{ ...container, ports }] },
      },
    },
  };
}

const bookinfoParts: readonly (readonly [string, readonly string[]])[] = [
  ['details', ['v1']],
  ['ratings', ['v1']],
  ['reviews', ['v1', 'v2', 'v3']],
  ['productpage', ['v1']],
];

const bookinfo = bookinfoParts.flatMap(([app, versions]) => [
  ...[service(app, 9080), account(`bookinfo-${app}`)],
  ...versions.map((version) =>
    deployment({
      ...{ app, version, port: 9080, account: `bookinfo-${app}` },
      image: `${hub}/examples-bookinfo-${app}-${version}:1.20.3`,
    }),
  ),
]);

const versionServices = bookinfoParts.flatMap(([app, versions]) =>
  versions.map((version) => service(app, 9080, 9080, { app, version }, `${app}-${version}`)),
);

const subsets = (host: string, ...names: string[]): object => ({
  ...{ apiVersion: istio, kind: 'DestinationRule', metadata: { name: host } },
  spec: { host, subsets: names.map((name) => ({ name, labels: { version: name } })) },
});

interface Route {
  readonly subset: string;
  readonly weight?: number;
}

const to = (host: string, ...routes: readonly Route[]): object => ({
  route: routes.map(({ subset, weight }) => ({ destination: { host, subset }, ...(weight && { weight }) })),
});

const virtualService = (host: string, ...http: object[]): object => ({
  ...{ apiVersion: istio, kind: 'VirtualService', metadata: { name: host } },
  spec: { hosts: [host], http },
});

const jasonMatch = { match: [{ headers: { 'end-user': { exact: 'jason' } } }] };
const percentage = { value: 100 };

const ratingsFault = (fault: object): object[] => [
  virtualService(
    'ratings',
    { ...jasonMatch, fault, ...to('ratings', { subset: 'v1' }) },
    to('ratings', { subset: 'v1' }),
  ),
];

const gateway = (name: string, number: number): object => ({
  ...{ apiVersion: istio, kind: 'Gateway', metadata: { name } },
  spec: {
    selector: { istio: 'ingressgateway' },
    servers: [{ port: { number, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }],
  },
});

const gatewayRoute = (name: string, gatewayName: string, http: object): object => ({
  ...{ apiVersion: istio, kind: 'VirtualService', metadata: { name } },
  spec: { hosts: ['*'], gateways: [gatewayName], http: [http] },
});

const pagePaths = { exact: ['/productpage', '/login', '/logout'], prefix: ['/static', '/api/v1/products'] };

const gatewayApi = 'gateway.networking.k8s.io/v1';

const ownManifests: Readonly<Record<string, readonly object[]>> = {
  'curl/curl.yaml': [
    ...[account('curl'), service('curl', 80)],
    deployment({
      ...{ app: 'curl', image: curlImage, account: 'curl' },
      command: ['/bin/sleep', 'infinity'],
    }),
  ],
  'httpbin/httpbin.yaml': [
    ...[account('httpbin'), service('httpbin', 8000, 8080)],
    {
      ...deployment({ app: 'httpbin', version: 'v1', image: httpbinImage, port: 8080, account: 'httpbin' }),
      metadata: { name: 'httpbin' },
    },
  ],
  'helloworld/helloworld.yaml': [
    service('helloworld', 5000),
    ...['v1', 'v2'].map((version) =>
      deployment({ app: 'helloworld', version, image: `${hub}/examples-helloworld-${version}:1.0`, port: 5000 }),
    ),
  ],
  'helloworld/helloworld-gateway.yaml': [
    gateway('helloworld-gateway', 80),
    gatewayRoute('helloworld', 'helloworld-gateway', {
      match: [{ uri: { exact: '/hello' } }],
      route: [{ destination: { host: 'helloworld', port: { number: 5000 } } }],
    }),
  ],
  'bookinfo-kube/bookinfo.yaml': bookinfo,
  'bookinfo-kube/bookinfo-versions.yaml': versionServices,
  'bookinfo-networking/destination-rule-all.yaml': [
    ...[subsets('productpage', 'v1'), subsets('reviews', 'v1', 'v2', 'v3')],
    ...[subsets('ratings', 'v1', 'v2'), subsets('details', 'v1', 'v2')],
  ],
  'bookinfo-networking/virtual-service-all-v1.yaml': bookinfoParts.map(([app]) =>
    virtualService(app, to(app, { subset: 'v1' })),
  ),
  'bookinfo-networking/virtual-service-reviews-test-v2.yaml': [
    virtualService('reviews', { ...jasonMatch, ...to('reviews', { subset: 'v2' }) }, to('reviews', { subset: 'v1' })),
  ],
  'bookinfo-networking/virtual-service-reviews-50-v3.yaml': [
    virtualService('reviews', to('reviews', { subset: 'v1', weight: 50 }, { subset: 'v3', weight: 50 })),
  ],
  'bookinfo-networking/virtual-service-reviews-v3.yaml': [virtualService('reviews', to('reviews', { subset: 'v3' }))],
  'bookinfo-networking/virtual-service-ratings-test-delay.yaml': ratingsFault({
    delay: { percentage, fixedDelay: '7s' },
  }),
  'bookinfo-networking/virtual-service-ratings-test-abort.yaml': ratingsFault({
    abort: { percentage, httpStatus: 500 },
  }),
  'bookinfo-networking/bookinfo-gateway.yaml': [
    gateway('bookinfo-gateway', 8080),
    gatewayRoute('bookinfo', 'bookinfo-gateway', {
      match: Object.entries(pagePaths).flatMap(([matchKind, paths]) =>
        paths.map((path) => ({ uri: { [matchKind]: path } })),
      ),
      route: [{ destination: { host: 'productpage', port: { number: 9080 } } }],
    }),
  ],
  'bookinfo-gateway-api/bookinfo-gateway.yaml': [
    {
      ...{ apiVersion: gatewayApi, kind: 'Gateway', metadata: { name: 'bookinfo-gateway' } },
      spec: {
        gatewayClassName: 'istio',
        listeners: [{ name: 'http', port: 80, protocol: 'HTTP', allowedRoutes: { namespaces: { from: 'Same' } } }],
      },
    },
    {
      ...{ apiVersion: gatewayApi, kind: 'HTTPRoute', metadata: { name: 'bookinfo' } },
      spec: {
        parentRefs: [{ name: 'bookinfo-gateway' }],
        rules: [
          {
            matches: [
              ...pagePaths.exact.map((value) => ({ path: { type: 'Exact', value } })),
              ...pagePaths.prefix.map((value) => ({ path: { type: 'PathPrefix', value } })),
            ],
            backendRefs: [{ name: 'productpage', port: 9080 }],
          },
        ],
      },
    },
  ],
  'bookinfo-gateway-api/route-reviews-90-10.yaml': [
    {
      ...{ apiVersion: gatewayApi, kind: 'HTTPRoute', metadata: { name: 'reviews' } },
      spec: {
        parentRefs: [{ group: '', kind: 'Service', name: 'reviews', port: 9080 }],
        rules: [
          {
            backendRefs: [
              { name: 'reviews-v1', port: 9080, weight: 90 },
              { name: 'reviews-v2', port: 9080, weight: 10 },
            ],
          },
        ],
      },
    },
  ],
};
