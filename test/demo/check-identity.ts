/** Checks workload identities, the rejection of plaintext, and certificate rotation without a restart. */
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../harness/eventually.ts';
import type { AgentProgram, Mesh } from '../harness/mesh.ts';
import { spiffeIdOf } from '../harness/mesh-identity.ts';
import { probe } from '../harness/probe.ts';
import { type CheckFinding, duration } from './findings.ts';
import { noFailures, type Progress } from './load-findings.ts';

/** Lifetime of workload certificates in the check: short enough to observe two rotations per minute. */
export const certificateLifetime = '20s';
const rotationLimitMs = 20_000;
const agentNames = ['gateway', 'sidecar'] as const;

interface ServedCertificate {
  readonly serialNumber: string;
  readonly uris: readonly string[];
}

/** @returns the workload certificate of each Envoy */
async function ownCertificates({ adminPort }: AgentProgram): Promise<ServedCertificate[]> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/certs`, {
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(2_000),
  });
  const { certificates } = (await response.json()) as {
    certificates: { cert_chain?: { serial_number: string; subject_alt_names?: { uri?: string }[] }[] }[];
  };
  return certificates
    .flatMap(({ cert_chain: [leaf] = [] }) => leaf ?? [])
    .map(({ serial_number: serialNumber, subject_alt_names: names = [] }) => ({
      serialNumber,
      uris: names.flatMap(({ uri }) => uri ?? []),
    }))
    .filter(({ uris }) => uris.length > 0);
}

export async function checkIdentity(mesh: Mesh, progress: Progress): Promise<CheckFinding[]> {
  return [
    ...(await Promise.all(agentNames.map((name) => identityFinding(mesh, name)))),
    await plaintextFinding(mesh),
    ...(await rotationFindings(mesh, progress)),
  ];
}

async function identityFinding(mesh: Mesh, name: (typeof agentNames)[number]): Promise<CheckFinding> {
  const seenUris = new Set((await ownCertificates(mesh[name]!)).flatMap(({ uris }) => uris));
  const expectedId = spiffeIdOf(name);
  return {
    check: `identity of the ${name}`,
    seen: [...seenUris].join(' and ') || 'none',
    expected: expectedId,
    ok: seenUris.size === 1 && seenUris.has(expectedId),
  };
}

async function plaintextFinding(mesh: Mesh): Promise<CheckFinding> {
  const { outcome } = await probe({ ...mesh.httpTarget, port: mesh.ports.sidecarIngress });
  return {
    check: 'plaintext to the sidecar (mutual TLS STRICT)',
    seen: outcome.ok ? 'a response' : outcome.code,
    expected: 'rejected',
    ok: !outcome.ok,
  };
}

/** Waits until the certificates of both workloads were rotated, and checks that no Envoy was restarted. */
async function rotationFindings(mesh: Mesh, progress: Progress): Promise<CheckFinding[]> {
  const load = await mesh.startLoad({
    target: mesh.httpTarget,
    clients: [
      { kind: 'ka', count: 2, pauseMs: 5 },
      { kind: 'new', count: 1, pauseMs: 10 },
      { kind: 'stream', count: 1, path: '/stream?seconds=3' },
    ],
    maxDurationMs: 3 * rotationLimitMs,
  });
  try {
    const findings: CheckFinding[] = [];
    for (const name of agentNames) {
      const agent = mesh[name]!;
      const serials = async (): Promise<string> =>
        (await ownCertificates(agent)).map(({ serialNumber }) => serialNumber).join();
      const [initialSerials, envoys] = [await serials(), mesh.envoysOf(agent).map(({ pid }) => pid)];
      const startedAt = performance.now();
      await eventually(`the ${name} has another certificate`, async () => (await serials()) !== initialSerials, {
        deadlineMs: rotationLimitMs,
      });
      const tookMs = performance.now() - startedAt;
      const hasSameEnvoys =
        envoys.join() ===
        mesh
          .envoysOf(agent)
          .map(({ pid }) => pid)
          .join();
      findings.push({
        check: `renewed certificate of the ${name}, without a restart`,
        seen: `after ${duration(tookMs)}, ${hasSameEnvoys ? 'the same Envoy' : 'another Envoy'}`,
        expected: 'the same Envoy',
        ok: hasSameEnvoys,
      });
      progress(`  ${findings.at(-1)!.check} ${findings.at(-1)!.seen}`);
    }
    await sleep(1_000);
    return [...findings, noFailures('requests during the rotations', await load.stop())];
  } finally {
    load.kill();
  }
}
