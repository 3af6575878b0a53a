/** A control plane in a separate process that untrusted clients attack. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { serviceEntry } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { Program } from '../harness/program.ts';
import { programFile } from '../harness/program-files.ts';

export interface AttackedServerPorts {
  readonly port: number;
  readonly http: number;
}

/** Creates a folder with the configuration of one service; the caller removes it. */
export function makeRoot(): string {
  const root = mkdtempSync(join(tmpdir(), 'chartpilot-hostile-'));
  mkdirSync(join(root, 'config'));
  writeFileSync(join(root, 'config/cart.yaml'), serviceEntry());
  return root;
}

/** Starts the process; resolves when it is ready. */
export async function startAttackedServer(
  root: string,
  { port, http }: AttackedServerPorts,
  env: Readonly<Record<string, string>>,
): Promise<Program> {
  const node = join(packageRoot(), 'node_modules/.bin/node');
  const args = ['discovery', '--registries=', '--configDir', join(root, 'config'), '--meshConfig', join(root, 'none')];
  const ports = ['--grpcAddr', `127.0.0.1:${port}`, '--httpAddr', `127.0.0.1:${http}`, '--monitoringAddr', ''];
  const server = Program.run('pilot-discovery', node, {
    args: [programFile('pilot-discovery'), ...args, ...ports],
    env: { ...process.env, PILOT_DEBOUNCE_AFTER: '1ms', ...env },
    cwd: root,
  });
  await eventually('the control plane is ready', async () => (await fetch(`http://127.0.0.1:${http}/ready`)).ok, {
    hopeless: () => server.hopeless(),
  });
  return server;
}
