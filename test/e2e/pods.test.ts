/** Applications without any knowledge of the mesh, each in its own network namespace: `npm run demo:netns -- --check`. */
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { checkPods, checkPodsEnd } from '../demo/check-pods.ts';
import { formatFindings } from '../demo/findings.ts';
import { requireIptables } from '../harness/iptables.ts';
import { PodMesh } from '../harness/pod-mesh.ts';

beforeAll(() => requireIptables());

test('connections redirected by iptables use mutual TLS between both sidecars, and hot restarts lose no request', async () => {
  const mesh = await PodMesh.create();
  onTestFinished(async () => void (await mesh.stop()));
  await mesh.start();
  const findings = [...(await checkPods(mesh, () => {})), ...(await checkPodsEnd(mesh))];
  expect(
    findings.filter(({ ok }) => !ok),
    formatFindings(findings),
  ).toEqual([]);
});
