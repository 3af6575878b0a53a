/** `npm run demo:cluster -- --check`: requests through the mesh, and leftovers after its removal. */
import { writeFileSync } from 'node:fs';
import { tracePath } from '../../src/runtime/trace/trace-endpoint.ts';
import { checkTraces } from '../harness/check-traces.ts';
import { eventually } from '../harness/eventually.ts';
import type { ClusterMesh } from './cluster-mesh.ts';
import { pageFindingOf } from './demo-page.ts';
import { type CheckFinding, type CheckStep, percent, runSteps } from './findings.ts';
import type { Progress } from './load-findings.ts';

const requests = 200;
const weightOfV2 = 20;
/** Four standard deviations of 200 random choices. */
const shareTolerance = 0.113;
const client = 'spiffe://cluster.local/ns/default/sa/shop';
const gateway = 'spiffe://cluster.local/ns/default/sa/front-istio';

export async function checkCluster(mesh: ClusterMesh, progress: Progress): Promise<CheckFinding[]> {
  const steps: readonly CheckStep[] = [
    ['mutual TLS between the sidecars', () => identityFindings(mesh)],
    ['only mutual TLS is accepted', () => strictFindings(mesh)],
    [`weights in the VirtualService: ${100 - weightOfV2}/${weightOfV2}`, () => weightFindings(mesh)],
    ['a request through the Gateway', () => gatewayFindings(mesh)],
    ["the debugger's page and the traces", () => debuggerFindings(mesh)],
    ['the mesh is removed', () => removalFindings(mesh)],
  ];
  return runSteps(steps, progress);
}

/** Stops all programs and checks leftovers on this machine. */
export async function checkClusterEnd(mesh: ClusterMesh): Promise<CheckFinding[]> {
  const leftoverTexts = await mesh.stop({ keepDirectory: true });
  return [finding('left behind', leftoverTexts.join('; ') || 'nothing', 'nothing')];
}

const finding = (check: string, observedText: string, expected: string): CheckFinding => ({
  check,
  seen: observedText,
  expected,
  ok: observedText === expected,
});

const clientIn = (response: string): string => /client (.+)/.exec(response)?.[1] ?? response.trim();

async function identityFindings(mesh: ClusterMesh): Promise<CheckFinding[]> {
  const { firstResponse, checkedBefore, checkedAfter } = mesh;
  const sumsOf = (report: string): string =>
    report
      .trim()
      .split('\n')
      .at(-1)!
      .replace(/, \d+ ok$/, '');
  return [
    // Kinds of the Gateway API are not defined yet.
    finding('pilot-discovery check on the bare cluster', sumsOf(checkedBefore), '0 error, 1 warning, 0 unknown'),
    finding('pilot-discovery check in the mesh', sumsOf(checkedAfter), '0 error, 0 warning, 0 unknown'),
    finding('identity of the client at stock', clientIn(firstResponse), client),
  ];
}

async function strictFindings({ terminal, clientCommand }: ClusterMesh): Promise<CheckFinding[]> {
  const outside = `kubectl -n outside exec deployment/shop -- node /app/request.js http://stock.default/`;
  await terminal.run('kubectl create namespace outside');
  await terminal.run('kubectl -n outside apply -f examples/cluster/shop.yaml -l app=shop');
  await terminal.run('kubectl -n outside rollout status deployment/shop --timeout 60s');
  const outputBefore = await terminal.run(outside);
  await terminal.run('kubectl apply -f examples/cluster/strict.yaml');
  await eventually('plaintext is refused', async () => (await terminal.repeat(outside)).includes('failed'));
  return [
    finding('client without a sidecar', clientIn(outputBefore), 'not verified'),
    finding(
      'client without a sidecar, STRICT',
      (await terminal.runFailing(outside)).split('\n')[0]!,
      'failed: ECONNRESET',
    ),
    finding('client with a sidecar, STRICT', clientIn(await terminal.run(clientCommand)), client),
  ];
}

async function weightFindings({ terminal, clientCommand }: ClusterMesh): Promise<CheckFinding[]> {
  await terminal.run('kubectl apply -f examples/cluster/weights.yaml');
  const shareIn = (output: string): number => linesStarting(output, 'stock v2') / linesStarting(output, '');
  // Without weights the share of 50 requests is 50 %.
  await eventually('the weights apply', async () => shareIn(await terminal.repeat(`${clientCommand} 50`)) < 0.34);
  const output = await terminal.run(`${clientCommand} ${requests}`);
  const share = shareIn(output);
  const expectedShare = weightOfV2 / 100;
  return [
    {
      check: 'share of v2, by the VirtualService',
      seen: `${percent(share)} of ${requests}`,
      expected: `${percent(expectedShare)} ± ${percent(shareTolerance)}`,
      ok: Math.abs(share - expectedShare) <= shareTolerance,
    },
    finding('responses', String(linesStarting(output, 'stock v')), String(requests)),
  ];
}

function linesStarting(output: string, text: string): number {
  return output.split('\n').filter((line) => line !== '' && line.startsWith(text)).length;
}

async function gatewayFindings({ terminal, gatewayCommand }: ClusterMesh): Promise<CheckFinding[]> {
  return [finding('identity of the Gateway at stock', clientIn(await terminal.run(gatewayCommand)), gateway)];
}

async function debuggerFindings(mesh: ClusterMesh): Promise<CheckFinding[]> {
  const findings = [await pageFindingOf(mesh.pageUrl)];
  for (const { name, port, token } of mesh.programs) {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`http://127.0.0.1:${port}${tracePath}?follow=false`, { headers });
    const file = mesh.traceFileOf(name.replaceAll(' ', '-'));
    writeFileSync(file, await response.text());
    const { code, output } = await checkTraces([file]);
    findings.push({
      ...finding(`trace of the ${name}`, code === 0 ? 'accepted' : 'rejected', 'accepted'),
      ...(code !== 0 && { detail: output }),
    });
  }
  return findings;
}

async function removalFindings(mesh: ClusterMesh): Promise<CheckFinding[]> {
  const leftoverTexts = (await mesh.uninstall()).trim().split('\n').filter(Boolean);
  return [finding('left in the cluster after the removal', leftoverTexts.join(', ') || 'nothing', 'nothing')];
}
