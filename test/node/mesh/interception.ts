/** Connections of a pod that must use its Envoy, and connections of the kubelet and kubectl that must not be affected. */
import { beforeAll, describe, expect, it } from 'vitest';
import { resourceOf } from '../../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../../src/discovery/kubernetes/api-server.ts';
import { createAuthority } from '../../certs/authority.ts';
import { eventually } from '../../harness/eventually.ts';
import { agentImage } from '../mesh-image.ts';
import { get } from '../node-request.ts';
import { hasCondition } from '../resources.ts';
import { addressesOf, addressOf, podsOf, readyPods } from '../workloads.ts';
import type { InstalledMesh } from './installed-mesh.ts';
import { PodStreams } from './pod-streams.ts';
import { application } from './sample-application.ts';

interface Echo {
  readonly pod: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly from: string;
  readonly to: string;
}

/** Header that Envoy sets for mutual TLS between sidecars. */
const clientCertificate = 'x-forwarded-client-cert';
/** Header that Envoy adds to each request. */
const requestId = 'x-request-id';

/** Manifests of these tests' pods. Apply them together with others, because each pod takes seconds to become ready. */
export function interceptedApplications(): string {
  return [
    application('tproxy', { annotations: { 'sidecar.istio.io/interceptionMode': 'TPROXY' } }),
    application('probed', {
      annotations: { 'traffic.sidecar.istio.io/excludeInboundPorts': '9090' },
      ...probedContainers(),
    }),
    application('excluding', { annotations: { 'traffic.sidecar.istio.io/excludeOutboundPorts': '80' } }),
    service('server-v6', { ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' }),
    service('server-dual', { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' }),
  ].join('\n---\n');
}

function service(name: string, families: object): string {
  const ports = [{ name: 'http', port: 80, targetPort: 8080 }];
  const spec = { selector: { app: 'server' }, ports, ...families };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name }, spec });
}

/** Each kind of handler is a probe of one of two containers. `/become?url=unready` makes readiness probes fail. */
function probedContainers() {
  const { certificate, privateKey } = createAuthority('probed').issue(['localhost']);
  const env = [
    { name: 'TLS_CERTIFICATE', value: certificate },
    { name: 'TLS_KEY', value: privateKey },
  ];
  const every = { periodSeconds: 1, failureThreshold: 2, timeoutSeconds: 20 };
  return {
    container: {
      env,
      startupProbe: { httpGet: { path: '/probe', port: 8080 }, ...every, failureThreshold: 60 },
      livenessProbe: { tcpSocket: { port: 7070 }, ...every },
      readinessProbe: { httpGet: { path: '/probe', port: 8443, scheme: 'HTTPS' }, ...every },
    },
    otherContainers: [
      {
        ...{ name: 'sleeper', image: agentImage, imagePullPolicy: 'Never', command: ['sleep', '1000000'] },
        securityContext: { runAsUser: 1000 },
        livenessProbe: { exec: { command: ['true'] }, ...every },
        readinessProbe: { grpc: { port: 9091 }, ...every },
      },
    ],
  };
}

/** @param mesh mesh with client, server and {@link interceptedApplications} */
export function testInterception(mesh: () => InstalledMesh): void {
  const echo = async (url: string, client?: string): Promise<Echo> => {
    const { status, body } = await mesh().call(url, client);
    expect({ status, body }).toMatchObject({ status: 200 });
    return JSON.parse(body);
  };
  const echoOf = async (url: string): Promise<Echo> => JSON.parse((await get(mesh().node, url)).body);
  const podOf = async (app: string): Promise<KubernetesObject> => (await podsOf(mesh().node, app))[0]!;

  describe('traffic interception of a pod', () => {
    beforeAll(async () => {
      const { node } = mesh();
      await Promise.all(['tproxy', 'probed', 'excluding'].map((app) => readyPods(node, app)));
    });

    it.each([
      ['only IPv6', 'server-v6'],
      ['both IP families', 'server-dual'],
    ])('sends requests to a Service of %s through both sidecars', async (_, host) => {
      const { headers } = await eventually('the request is sent', () => echo(`http://${host}`));
      expect(headers[clientCertificate]).toContain('sa/client');
    });

    it('covers each address of a dual-stack Service, and each address of a pod from outside of the mesh', async () => {
      const { cluster } = mesh().node;
      const getRequest = { method: 'GET', resource: resourceOf('Service'), namespace: cluster.namespace } as const;
      const { spec } = await cluster.admin.request(
        { ...getRequest, name: 'server-dual' },
        new AbortController().signal,
      );
      const { clusterIPs } = spec as { clusterIPs: readonly string[] };
      expect(clusterIPs.map((address) => address.includes(':'))).toEqual([false, true]);
      for (const address of clusterIPs) {
        const { headers } = await echo(`http://${inUrl(address)}`);
        expect(headers[clientCertificate]).toContain('sa/client');
      }
      const addresses = addressesOf(await podOf('server'));
      expect(addresses.map((address) => address.includes(':'))).toEqual([false, true]);
      for (const address of addresses) {
        expect((await echoOf(`http://${inUrl(address)}:8080/`)).headers).toHaveProperty([requestId]);
      }
    });

    it('with TPROXY preserves the client address for the application, and covers requests in both directions', async () => {
      const client = addressOf(await podOf('client'));
      const { headers, from } = await echo('http://tproxy');
      expect(headers[clientCertificate]).toContain('sa/client');
      expect(from.replace('::ffff:', '')).toBe(client);
      const echoResponse = await echo('http://server', 'tproxy');
      expect(echoResponse.headers[clientCertificate]).toContain('sa/tproxy');
    });

    it('omits connections to excluded ports', async () => {
      const probed = addressOf(await podOf('probed'));
      expect((await echoOf(`http://${probed}:8080/`)).headers).toHaveProperty([requestId]);
      expect((await echoOf(`http://${probed}:9090/`)).headers).not.toHaveProperty([requestId]);
      expect((await echo('http://server')).headers).toHaveProperty([clientCertificate]);
      expect((await echo('http://server', 'excluding')).headers).not.toHaveProperty([clientCertificate]);
    });

    it('passes probes of all kinds to the application under STRICT, and their failures to the kubelet', async () => {
      const { node } = mesh();
      const metadata = { name: 'probed' };
      const spec = { selector: { matchLabels: { app: 'probed' } }, mtls: { mode: 'STRICT' } };
      await node.cluster.apply(resourceOf('PeerAuthentication'), { metadata, spec });
      const address = addressOf(await podOf('probed'));
      const order = (path: string) => get(node, `http://${address}:9090/${path}`);
      const isPlaintextRefused = () =>
        get(node, `http://${address}:8080/`).then(
          () => false,
          () => true,
        );
      await eventually('plaintext is refused', isPlaintextRefused);
      const containersReady = async (): Promise<Record<string, boolean>> => {
        const { status } = await podOf('probed');
        const { containerStatuses } = status as { containerStatuses: { name: string; ready: boolean }[] };
        return Object.fromEntries(containerStatuses.map(({ name, ready }) => [name, ready]));
      };
      await order('become?url=unready');
      await eventually('probes over HTTPS and gRPC fail', async () => {
        const { app, sleeper } = await containersReady();
        return app === false && sleeper === false;
      });
      await order('become?url=ready');
      const pod = await eventually('the pod is ready', async () => {
        const probedPod = await podOf('probed');
        return hasCondition(probedPod, 'Ready') && probedPod;
      });
      const { containerStatuses } = pod.status as { containerStatuses: { name: string; restartCount: number }[] };
      expect(containerStatuses.map(({ restartCount }) => restartCount)).toEqual(containerStatuses.map(() => 0));
      await node.cluster.delete(resourceOf('PeerAuthentication'), metadata.name);
    });

    it('does not affect exec, logs and port-forward', async () => {
      const streams = await PodStreams.open(mesh().node);
      try {
        const { name } = (await podOf('server')).metadata;
        const ran = await streams.exec({ name }, 'app', ['sh', '-c', 'echo out; echo error >&2; exit 3']);
        expect(ran).toMatchObject({
          stdout: 'out\n',
          stderr: 'error\n',
          status: expect.stringContaining('exit code 3'),
        });
        const version = await streams.exec({ name }, 'istio-proxy', ['pilot-agent', 'version']);
        expect(version.status).toBe('Success');
        expect(await streams.logs({ name }, 'app')).toBe('listening\n');
        expect(await streams.logs({ name }, 'istio-proxy')).not.toBe('');
        expect(await streams.portForward({ name }, 8080, '/')).toContain(`"pod":"${name}"`);
      } finally {
        streams.close();
      }
    });
  });
}

function inUrl(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}
