/** Envoy's binary is replaced by another version and back while the agent runs; an unsuitable or crashing one is not used. */

import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAdminClient } from '../../src/agent/admin/admin-client.ts';
import { envoyVersion } from '../../src/agent/envoy/envoy-binary.ts';
import { otherEnvoyBinary } from '../fixtures/other-envoy.ts';
import { envoyBinary } from '../fixtures/real-envoy.ts';
import { eventually } from '../harness/eventually.ts';
import type { EnvoyProcess } from '../harness/host-processes.ts';
import { loggedLine } from '../harness/logged-line.ts';
import { type Mesh, startMesh } from '../harness/mesh.ts';
import { sized } from '../harness/size-of-run.ts';
import { formatReport, type LoadReport } from '../load/report.ts';
import { conclude } from './conclude.ts';

const { replacements, deaths } = sized({
  short: { replacements: 2, deaths: [300] },
  full: { replacements: 20, deaths: [300, 2_000, 12_000] },
});
const isFull = deaths.length > 1;

let mesh: Mesh;
let other: { path: string; version: string };
const folder = mkdtempSync(join(tmpdir(), 'chartpilot-binary-'));
const link = join(folder, 'bin', 'envoy');

beforeAll(async () => {
  other = await otherEnvoyBinary();
  mkdirSync(join(folder, 'bin'));
  pointTo(envoyBinary());
  const agentArgs = ['--binaryPath', link];
  mesh = await startMesh({ sidecar: false, drainMs: 1_000, parentShutdownMs: 4_000, agentArgs });
});

afterAll(async () => {
  await conclude(mesh);
  rmSync(folder, { recursive: true, force: true });
});

/** Replaces the link by a rename, as a Kubernetes volume does. */
function pointTo(binary: string): void {
  symlinkSync(binary, `${link}.new`);
  renameSync(`${link}.new`, link);
}

/** The real Envoy, preceded by shell commands, in one process. */
function script(name: string, previous: string, command = `exec ${other.path} "$@"`): string {
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${previous}\n${command}\n`, { mode: 0o700 });
  return file;
}

/** Each request opens a connection, because an open one would still reach the parent. */
async function servedVersion(): Promise<string> {
  const { body } = await createAdminClient('127.0.0.1', mesh.gateway!.adminPort).get('/server_info');
  return (JSON.parse(body) as { version: string }).version.split('/')[1]!;
}

const newest = (): EnvoyProcess => mesh.envoysOf(mesh.gateway!).at(-1)!;

function waitUntilSettled(): Promise<boolean> {
  return eventually('its parent has left', () => mesh.envoysOf(mesh.gateway!).length === 1);
}

function serves(version: string): Promise<boolean> {
  return eventually(
    `Envoy ${version} serves`,
    async () => {
      const isServed = (await servedVersion().catch(() => '')) === version;
      return isServed && (await fetch(statusUrl('/healthz/ready'))).ok;
    },
    { everyMs: 50 },
  );
}

const statusUrl = (path: string): string => `http://127.0.0.1:${mesh.gateway!.statusPort}${path}`;
const linesMatching = (pattern: RegExp): number =>
  mesh.gateway!.program.lines.filter((line) => pattern.test(line)).length;

function startLoad(maxDurationMs: number) {
  return mesh.startLoad({
    target: mesh.httpTarget,
    clients: [
      { kind: 'ka', count: 2, pauseMs: 2 },
      { kind: 'slow', count: 2, pauseMs: 1_000 },
      { kind: 'new', count: 1, pauseMs: 5 },
      { kind: 'h2', count: 1, pauseMs: 5 },
    ],
    maxDurationMs,
  });
}

test(`${replacements} replacements of Envoy's binary with another version fail no request`, async () => {
  const load = await startLoad(600_000);
  const ownVersion = await servedVersion();
  for (let round = 1; round <= replacements; round++) {
    const [binary, version] = round % 2 === 1 ? [other.path, other.version] : [envoyBinary(), ownVersion];
    pointTo(binary);
    await serves(version);
    expect(newest().epoch).toBe(round);
    await waitUntilSettled();
  }
  const report = await load.stop();
  console.log(`${replacements} replacements, ${ownVersion} and ${other.version} in turns\n${formatReport(report)}`);
  expect(report.failed, formatReport(report)).toBe(0);
  for (const kind of ['ka', 'slow', 'new', 'h2'] as const) expect(report.kinds[kind]!.total).toBeGreaterThan(5);
  // Each binary was used once, and none was rejected.
  expect(linesMatching(loggedLine('restart.ended.live', { 'restart.reason': 'Envoy replaced' }))).toBe(replacements);
}, 900_000);

test('the agent rejects a binary that is not Envoy or has another hot restart version before it changes anything', async () => {
  const previous = newest();
  const printsVersion =
    'for word in "$@"; do [ "$word" = --hot-restart-version ] && { printf 11.112 >&2; exit 0; }; done';
  pointTo(script('incompatible', printsVersion));
  await eventually(
    'it is refused',
    () =>
      linesMatching(loggedLine('binary.rejected', { reason: /hot restart version 11\.112, running Envoy has/ })) > 0,
  );
  pointTo('/bin/true');
  await eventually(
    'it is refused',
    () => linesMatching(loggedLine('binary.rejected', { reason: /--version printed no Envoy version/ })) > 0,
  );
  pointTo(
    script('refusing', 'for word in "$@"; do [ "$word" = validate ] && { echo no such filter >&2; exit 1; }; done'),
  );
  await eventually(
    'it is refused',
    () => linesMatching(loggedLine('binary.rejected', { reason: /rejects the bootstrap: no such filter/ })) > 0,
  );
  expect(mesh.envoysOf(mesh.gateway!)).toEqual([previous]);
  const metrics = await (await fetch(statusUrl('/metrics'))).text();
  expect(metrics).toMatch(/istio_agent_envoy_binaries_total\{outcome="refused"\} 3/);
  // A restart for another reason uses the validated binary, whatever is at the path.
  mesh.gateway!.program.signal('SIGHUP');
  await eventually('another epoch serves', () => newest().epoch === previous.epoch + 1);
  expect(newest().command[0]).toBe(previous.command[0]);
  await waitUntilSettled();
});

/** Time from the first to the last failed request. */
function gapMs({ kinds }: LoadReport): number {
  const failures = Object.values(kinds).flatMap((kind) => kind.failures.map(({ atMs }) => atMs));
  return failures.length === 0 ? 0 : Math.max(...failures) - Math.min(...failures);
}

test.each(deaths)(
  'the agent restores the previous binary if a new Envoy is killed %i ms after it was live',
  async (afterMs) => {
    const previous = await servedVersion();
    const [binary, version] = previous === other.version ? [envoyBinary(), envoyVersion] : [other.path, other.version];
    const load = await startLoad(120_000);
    pointTo(binary);
    await serves(version);
    await sleep(afterMs);
    const [killed, isSingleEnvoy] = [newest(), mesh.envoysOf(mesh.gateway!).length === 1];
    process.kill(killed.pid, 'SIGKILL');
    await serves(previous);
    // On a busy machine the parent may have exited before the test notices that the child serves.
    const hasParent = isFull ? afterMs < 4_000 : !isSingleEnvoy;
    expect(newest().epoch).toBe(hasParent ? killed.epoch : 0);
    await sleep(500);
    const report = await load.stop();
    console.log(
      `killed after ${afterMs} ms (${version}): ${report.failed} of ${report.total} failed, ${gapMs(report)} ms`,
    );
    // Without the agent the outage would last as long as the load.
    expect(gapMs(report)).toBeLessThan(sized({ short: 3_000, full: 500 }));
    await waitUntilSettled();
    // The agent does not retry the new binary without an order.
    expect(await servedVersion()).toBe(previous);
    pointTo(previous === other.version ? other.path : envoyBinary());
    await sleep(2_000);
  },
);

test.runIf(isFull)(
  'the agent abandons a new Envoy that never becomes live, and the previous one gets its admin interface back',
  async () => {
    const previous = await servedVersion();
    const epoch = newest().epoch;
    const takenBack = linesMatching(loggedLine('binary.withdrawn'));
    const load = await startLoad(120_000);
    const endless = {
      static_resources: {
        clusters: [
          {
            name: 'endless',
            type: 'EDS',
            eds_cluster_config: {
              eds_config: {
                initial_fetch_timeout: '0s',
                resource_api_version: 'V3',
                api_config_source: {
                  api_type: 'GRPC',
                  transport_api_version: 'V3',
                  grpc_services: [{ google_grpc: { target_uri: '127.0.0.1:1', stat_prefix: 'endless' } }],
                },
              },
            },
          },
        ],
      },
    };
    const endlessScript = `case "$*" in *"--mode validate"*|*--version*|*--hot-restart-version*) ;; *) exec ${other.path} "$@" --config-yaml '${JSON.stringify(endless)}';; esac`;
    pointTo(script('endless', endlessScript));
    await eventually('it is started', () => newest().epoch === epoch + 1);
    await eventually('it is given up', () => linesMatching(loggedLine('binary.withdrawn')) > takenBack);
    await serves(previous);
    const report = await load.stop();
    expect(report.failed, formatReport(report)).toBe(0);
  },
);
