/** A trace of a real agent, recorded once. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Mesh } from '../../harness/mesh.ts';
import { standInBinary } from '../../stand-in/control.ts';

let recordedLines: Promise<readonly string[]> | undefined;

/** Lines of a start, a restart and an exit. */
export function recordedTrace(): Promise<readonly string[]> {
  recordedLines ??= record();
  return recordedLines;
}

async function record(): Promise<readonly string[]> {
  const mesh = await Mesh.create({ sidecar: false, watchDelayMs: 50, drainMs: 1_000, parentShutdownMs: 1_000 });
  try {
    await mesh.startDiscovery();
    mkdirSync(join(mesh.root, 'gateway'), { recursive: true });
    const agent = mesh.startGateway(['--binaryPath', standInBinary]);
    await mesh.waitForAgent(agent);
    mesh.renewCertificate();
    await agent.program.line(/epoch-1.*(live|running)/);
    await agent.program.stop();
    return readFileSync(agent.traceFile, 'utf8').trim().split('\n');
  } finally {
    await mesh.stop();
  }
}
