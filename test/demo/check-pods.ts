/** Checks of the pod demo: unmodified applications are part of the mesh. */
import { setTimeout as sleep } from 'node:timers/promises';
import { checkTraces } from '../harness/check-traces.ts';
import { eventually } from '../harness/eventually.ts';
import { spiffeIdOf } from '../harness/mesh-identity.ts';
import { outsideHost, type Pod, type PodMesh, podService } from '../harness/pod-mesh.ts';
import type { LoadReport } from '../load/report.ts';
import { type CheckFinding, duration, percent } from './findings.ts';
import { noFailures, type Progress } from './load-findings.ts';

/** Weight in examples/pods/routes.yaml. */
const shareOfV2 = 0.2;
const shareTolerance = 0.08;

export async function checkPods(mesh: PodMesh, progress: Progress): Promise<CheckFinding[]> {
  progress('identities of callers');
  const findings = [await nameFinding(mesh), ...(await callerFindings(mesh)), ...(await blockedFindings(mesh))];
  progress('two hot restarts under load: the client’s sidecar, and one of the service’s');
  return [...findings, ...(await restartFindings(mesh, progress))];
}

/** Removes redirection, stops all programs and checks leftovers. */
export async function checkPodsEnd(mesh: PodMesh): Promise<CheckFinding[]> {
  const rules = await Promise.all(Object.values(mesh.pods).map((pod) => countRemainingRules(mesh, pod)));
  const leftoverTexts = await mesh.stop({ keepDirectory: true });
  const codes = Object.values(mesh.pods).map(({ agent }) => agent?.exit?.signal ?? agent?.exit?.code);
  const checkReport = await checkTraces(mesh.traceFiles);
  return [
    finding('redirection after istio-clean-iptables: ISTIO_… rules', rules.join(', '), '0, 0, 0'),
    finding('agents end on TERM with', codes.join(', '), '0, 0, 0'),
    finding('left behind', leftoverTexts.join('; ') || 'nothing', 'nothing'),
    {
      ...finding('traces of all programs', checkReport.code === 0 ? 'accepted' : 'rejected', 'accepted'),
      ...(checkReport.code !== 0 && { detail: checkReport.output }),
    },
  ];
}

const finding = (check: string, observedText: string, expected: string): CheckFinding => ({
  check,
  seen: observedText,
  expected,
  ok: observedText === expected,
});

async function nameFinding({ pods }: PodMesh): Promise<CheckFinding> {
  const { stdout } = await pods.client.side.run(['getent', 'ahostsv4', podService.host]);
  return finding(`${podService.host} is, to the client,`, stdout.split(/\s/, 1)[0]!, podService.address);
}

/** Checks the caller identity that the sidecar passes to its application, from the client certificate. */
async function callerFindings(mesh: PodMesh): Promise<CheckFinding[]> {
  const { stdout } = await mesh.callService('/headers');
  const headers = JSON.parse(stdout) as { 'x-forwarded-client-cert'?: string };
  const [, byIdentity, uri] = /^By=([^;]*);.*;URI=([^;]*)$/.exec(headers['x-forwarded-client-cert'] ?? '') ?? [];
  return [
    finding('the application is called by', uri ?? 'nobody', spiffeIdOf('client')),
    finding('and its sidecar is', byIdentity ?? 'nobody', spiffeIdOf('sample-v1')),
  ];
}

/** curl exit codes: empty reply, connection reset. */
const refusalsByCode: Readonly<Record<number, string>> = { 52: 'rejected', 56: 'rejected' };

async function blockedFindings({ pods, outside }: PodMesh): Promise<CheckFinding[]> {
  const outcomeOf = async (side: Pod['side'], url: string): Promise<string> => {
    const { exitCode } = await side.run(['curl', '--silent', '--max-time', '5', url]);
    return refusalsByCode[exitCode] ?? `curl ends with ${exitCode}`;
  };
  return [
    finding(
      'plaintext from outside the mesh to a pod, which is STRICT',
      await outcomeOf(outside, `http://${pods['sample-v1'].address}:8080/`),
      'rejected',
    ),
    finding(
      `${outsideHost}, which the mesh does not know (REGISTRY_ONLY)`,
      await outcomeOf(pods.client.side, `http://${outsideHost}:8080/`),
      'rejected',
    ),
  ];
}

async function restartFindings(mesh: PodMesh, progress: Progress): Promise<CheckFinding[]> {
  const load = await mesh.startLoad({
    clients: [
      { kind: 'ka', count: 2, pauseMs: 15 },
      { kind: 'new', count: 1, pauseMs: 20 },
      { kind: 'stream', count: 1, path: '/stream?seconds=2' },
    ],
    maxDurationMs: 60_000,
  });
  try {
    await sleep(500);
    const findings: CheckFinding[] = [];
    for (const name of ['client', 'sample-v1'] as const) {
      const startedAt = performance.now();
      mesh.pods[name].agent!.signal('SIGHUP');
      await eventually(`${name} has another Envoy`, async () => (await liveEpoch(mesh.pods[name])) === 1);
      const observedText = duration(performance.now() - startedAt);
      findings.push({
        check: `hot restart beside ${name}, live`,
        seen: `after ${observedText}`,
        expected: 'epoch 1',
        ok: true,
      });
      progress(`  ${findings.at(-1)!.check} ${findings.at(-1)!.seen}`);
    }
    // The superseded Envoys exit within this time.
    await sleep(3_000);
    const report = await load.stop();
    return [...findings, noFailures('requests during the restart', report), shareFinding(report)];
  } finally {
    load.kill();
  }
}

async function liveEpoch({ side }: Pod): Promise<number | undefined> {
  const { stdout } = await side.run(['curl', '--silent', '--max-time', '2', 'http://127.0.0.1:15000/server_info']);
  const info = JSON.parse(stdout) as { state: string; command_line_options: { restart_epoch: number } };
  return info.state === 'LIVE' ? info.command_line_options.restart_epoch : undefined;
}

function shareFinding({ versions }: LoadReport): CheckFinding {
  const { v1 = 0, v2 = 0 } = versions;
  const share = v2 / (v1 + v2);
  return {
    check: 'share of v2, by the VirtualService',
    seen: `${percent(share)} of ${v1 + v2}`,
    expected: `${percent(shareOfV2)} ± ${percent(shareTolerance)}`,
    ok: Math.abs(share - shareOfV2) <= shareTolerance,
  };
}

async function countRemainingRules(mesh: PodMesh, pod: Pod): Promise<number> {
  await mesh.iptables(pod, 'istio-clean-iptables');
  const savedRules = await pod.side.mustRun('iptables-save');
  return savedRules.split('\n').filter((line) => line.includes('ISTIO_')).length;
}
