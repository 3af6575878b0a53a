import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import type { Mesh } from '../harness/mesh.ts';

/** Runs `chartpilot check` on traces. @returns its exit code and what it printed. */
export function checkTraces(files: readonly string[]): { code: number; output: string } {
  try {
    const output = execFileSync(join(packageRoot(), 'bin/chartpilot'), ['check', ...files], { encoding: 'utf8' });
    return { code: 0, output };
  } catch (error) {
    const { status, stdout, stderr } = error as { status: number; stdout: string; stderr: string };
    return { code: status, output: stdout + stderr };
  }
}

/** Ends a mesh: nothing may be left on the host, and whatever its programs did must conform to the sequence diagrams. */
export async function conclude(mesh: Mesh | undefined): Promise<void> {
  if (mesh === undefined) return;
  const left = await mesh.stop({ keepDirectory: true });
  try {
    if (mesh.traceFiles.length > 0) {
      const { code, output } = checkTraces(mesh.traceFiles);
      expect(code, output).toBe(0);
    }
    expect(left).toEqual([]);
  } finally {
    mesh.remove();
  }
}
