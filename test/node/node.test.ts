/** The test node runs a Deployment with the programs of Kubernetes, and leaves nothing behind. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { findExecutable } from '../../src/runtime/files/executable.ts';
import { eventually } from '../harness/eventually.ts';
import { get } from './node-request.ts';
import { resources } from './resources.ts';
import { type RunningNode, startNode } from './start-node.ts';
import { addressOf, applyManifests, podsOf, readyPods } from './workloads.ts';

let node: RunningNode;

beforeAll(async () => {
  node = await startNode();
}, 1_800_000);
afterAll(() => node?.stop());

const webImage = 'localhost/web:test';
const webAddress = '10.96.20.20';

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 1
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: web
          image: ${webImage}
          imagePullPolicy: Never
          args: [httpd, -f, -p, "8080", -h, /var/run/secrets/kubernetes.io/serviceaccount]
          readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 }
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { clusterIP: ${webAddress}, selector: { app: web }, ports: [{ port: 80, targetPort: 8080 }] }
`;

async function importWebImage(): Promise<void> {
  const root = join(node.folder, 'web');
  mkdirSync(join(root, 'bin'), { recursive: true });
  copyFileSync(findExecutable('busybox', process.env)!, join(root, 'bin/busybox'));
  symlinkSync('busybox', join(root, 'bin/httpd'));
  await node.importImage({ name: webImage, root, entrypoint: ['/bin/busybox'], user: '1000:1000' });
}

it('the test node runs the pod of a Deployment, and the Service connects to it until the Deployment is deleted', async () => {
  const { cluster } = node;
  await importWebImage();
  await applyManifests(node, web);
  const [pod] = await readyPods(node, 'web');
  expect(addressOf(pod!)).toMatch(/^10\.244\.0\.\d+$/);
  // The kubelet mounts the ServiceAccount's files: the namespace, and the CA certificate that the controller manager publishes.
  const serviceResponse = await eventually('the Service connects to the pod', () =>
    get(node, `http://${webAddress}/namespace`),
  );
  expect(serviceResponse).toMatchObject({ status: 200, body: cluster.namespace });
  expect((await get(node, `http://${addressOf(pod!)}:8080/ca.crt`)).body).toContain(cluster.address.ca.trim());

  await cluster.delete(resources.Deployment, 'web');
  await eventually('the pod is removed', async () => (await podsOf(node, 'web')).length === 0);
});

it('the test node leaves no process, file or cgroup when it stops', async () => {
  const { folder, namespaces } = node;
  await node.stop();
  expect(existsSync(folder)).toBe(false);
  expect(existsSync(`/proc/${namespaces.pid}`)).toBe(false);
  expect(processesWith(folder)).toEqual([]);
  expect(readFileSync('/proc/mounts', 'utf8')).not.toContain(folder);
  const cgroups = readdirSync('/sys/fs/cgroup', { recursive: true, encoding: 'utf8' });
  expect(cgroups.filter((path) => path.includes(`cp-node-${process.pid}-`))).toEqual([]);
});

function processesWith(commandText: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        return command.includes(commandText) ? [command] : [];
      } catch {
        return [];
      }
    });
}
