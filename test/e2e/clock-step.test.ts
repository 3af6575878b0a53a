/** Sets the wall clock of an agent and its control plane 30 h forward: their certificates expire before their timers fire. */

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { envoyBinary } from '../fixtures/real-envoy.ts';
import { CertificateCaller } from '../harness/certificate-caller.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { linesOf } from '../harness/logged-line.ts';
import { Program } from '../harness/program.ts';
import { programFile } from '../harness/program-files.ts';

const hourMs = 3_600_000;

/** A preloaded module that shifts a program's wall clock by the milliseconds in a file; the machine's clock does not change. */
const clock = (file: string): string => `
import { readFileSync } from 'node:fs';
const MachineDate = Date;
let [aheadMs, readAt] = [0, Number.NEGATIVE_INFINITY];
function ahead() {
  if (performance.now() - readAt > 100) [aheadMs, readAt] = [Number(readFileSync(${JSON.stringify(file)}, 'utf8')), performance.now()];
  return aheadMs;
}
globalThis.Date = class Date extends MachineDate {
  constructor(...parts) {
    if (parts.length === 0) super(MachineDate.now() + ahead());
    else super(...parts);
  }
  static now() {
    return MachineDate.now() + ahead();
  }
};
`;

let root: string;
let agent: Program;
let discovery: Program;
let env: NodeJS.ProcessEnv;
let statusPort: number;

function renewToken(): void {
  const token = execFileSync(join(packageRoot(), 'bin/pilot-discovery'), ['token', 'shop/cart'], { env });
  writeFileSync(join(root, 'var/run/secrets/tokens/istio-token'), token);
}

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'clock-step-'));
  const [grpc, securePort, http, monitoring, admin, status] = (await freePorts(6)) as number[];
  statusPort = status!;
  for (const folder of ['mesh', 'var/run/secrets/tokens', 'var/run/secrets/istio']) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  writeFileSync(join(root, 'ahead'), '0');
  writeFileSync(join(root, 'clock.mjs'), clock(join(root, 'ahead')));
  const options = `${process.env.NODE_OPTIONS ?? ''} --import=${join(root, 'clock.mjs')}`;
  env = { ...process.env, SELF_SIGNED_CA_DIR: join(root, 'ca'), NODE_OPTIONS: options };
  const at = (port: number | undefined): string => `127.0.0.1:${port}`;
  discovery = Program.run('pilot-discovery', process.execPath, {
    args: [
      programFile('pilot-discovery'),
      ...['discovery', '--grpcAddr', at(grpc), '--secureGRPCAddr', at(securePort), '--httpAddr', at(http)],
      ...['--monitoringAddr', at(monitoring), '--httpsAddr=', '--registries=', '--configDir', join(root, 'mesh')],
    ],
    env,
    cwd: root,
  });
  await eventually('the control plane is ready', async () => (await fetch(`http://${at(http)}/ready`)).ok);
  const caller = new CertificateCaller(join(root, 'ca'));
  writeFileSync(join(root, 'var/run/secrets/istio/root-cert.pem'), caller.roots());
  caller.close();
  renewToken();
  agent = Program.run('pilot-agent', process.execPath, {
    args: [
      programFile('pilot-agent'),
      ...['proxy', 'sidecar', '--discoveryAddress', at(grpc), '--controlPlaneAuthPolicy', 'NONE'],
      ...['--binaryPath', envoyBinary(), '--proxyAdminPort', String(admin), '--statusPort', String(status)],
      ...['--configPath', join(root, 'proxy'), '--runDir', join(root, 'run'), '--concurrency', '1'],
    ],
    env: {
      ...env,
      ...{ CA_ADDR: at(securePort), POD_NAME: 'cart-0', POD_NAMESPACE: 'shop', SERVICE_ACCOUNT: 'cart' },
      ...{ INSTANCE_IP: '127.0.0.1', ENVOY_STATUS_PORT: '0', ENVOY_PROMETHEUS_PORT: '0' },
    },
    cwd: root,
  });
});

afterAll(async () => {
  for (const program of [agent, discovery]) {
    if (program === undefined) continue;
    process.kill(program.pid, 'SIGTERM');
    await program.exited;
  }
  rmSync(root, { recursive: true, force: true });
});

async function page(path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`http://127.0.0.1:${statusPort}${path}`);
  return { status: response.status, text: await response.text() };
}

const isReady = async (): Promise<boolean> => (await page('/healthz/ready')).status === 200;

/** Uses the wall clock of the programs. */
async function readSecondsLeft(): Promise<number> {
  const { text } = await page('/stats/prometheus');
  return Number(/^istio_agent_cert_expiry_seconds\{.*default.*\} (\S+)$/m.exec(text)?.[1]);
}

test('a certificate that expires due to a clock step makes the proxy unready and is renewed without a restart', async () => {
  await eventually('the proxy is ready', isReady);
  expect(await readSecondsLeft()).toBeGreaterThan(20 * 3_600);
  writeFileSync(join(root, 'ahead'), String(30 * hourMs));
  // The token has expired as well, so the certificate cannot be renewed.
  await eventually('the proxy is not ready', async () => !(await isReady()));
  await eventually('the agent has seen the step', () => linesOf(agent.lines, 'clock.stepped').length > 0);
  expect(linesOf(agent.lines, 'readiness.lost', { reason: /workload certificate expired on/ })).not.toEqual([]);
  renewToken();
  await eventually('the certificate is renewed', isReady);
  expect(await readSecondsLeft()).toBeGreaterThan(20 * 3_600);
  expect(linesOf(agent.lines, 'clock.stepped')).toHaveLength(1);
});
