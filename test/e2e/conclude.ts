import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { checkTraces } from '../harness/check-traces.ts';
import type { Mesh } from '../harness/mesh.ts';
import { traceEvidence } from '../harness/trace-evidence.ts';

/** Stops a mesh. Fails if a process or file is left on the host, or if a trace does not conform to the sequence diagrams. */
export async function conclude(mesh: Mesh | undefined): Promise<void> {
  if (mesh === undefined) return;
  const leftovers = await mesh.stop({ keepDirectory: true });
  try {
    if (mesh.traceFiles.length > 0) {
      const { code, output } = await checkTraces(mesh.traceFiles);
      expect(code, output).toBe(0);
    }
    expect(leftovers, leftovers.length === 0 ? '' : evidenceOf(mesh)).toEqual([]);
  } finally {
    mesh.remove();
  }
}

/** Actions of the programs on their Envoys, and the last log lines of the latest programs. */
function evidenceOf({ root, gateway, sidecar }: Mesh): string {
  const directory = join(root, 'traces');
  const traces = readdirSync(directory).map((name) => join(directory, name));
  return traceEvidence(
    traces,
    [gateway, sidecar].flatMap((agent) => agent?.program.lines.slice(-30) ?? []),
  );
}
