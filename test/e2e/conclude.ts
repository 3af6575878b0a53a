import { expect } from 'vitest';
import { checkTraces } from '../harness/check-traces.ts';
import type { Mesh } from '../harness/mesh.ts';

/** Ends a mesh: nothing may be left on the host, and whatever its programs did must conform to the sequence diagrams. */
export async function conclude(mesh: Mesh | undefined): Promise<void> {
  if (mesh === undefined) return;
  const left = await mesh.stop({ keepDirectory: true });
  try {
    if (mesh.traceFiles.length > 0) {
      const { code, output } = await checkTraces(mesh.traceFiles);
      expect(code, output).toBe(0);
    }
    expect(left).toEqual([]);
  } finally {
    mesh.remove();
  }
}
