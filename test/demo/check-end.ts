import { basename } from 'node:path';
import { checkTraces } from '../harness/check-traces.ts';
import type { AgentProgram, Mesh } from '../harness/mesh.ts';
import type { CheckFinding } from './findings.ts';

/** Stops the mesh and checks the exits of its agents, leftovers on the host, and every program's trace. */
export async function checkEnd(mesh: Mesh): Promise<CheckFinding[]> {
  const leftoverTexts = await mesh.stop({ keepDirectory: true });
  return [
    exitFinding('gateway', mesh.gateway),
    exitFinding('sidecar', mesh.sidecar),
    {
      check: 'left behind',
      seen: leftoverTexts.length === 0 ? 'nothing' : `${leftoverTexts.length} things`,
      expected: 'no process, no file in /dev/shm',
      ok: leftoverTexts.length === 0,
      ...(leftoverTexts.length > 0 && { detail: leftoverTexts.join('; ') }),
    },
    ...(await Promise.all(mesh.traceFiles.map(traceFinding))),
  ];
}

function exitFinding(name: string, agent: AgentProgram | undefined): CheckFinding {
  const exit = agent?.program.exit;
  return {
    check: `${name}'s agent exits on SIGTERM`,
    seen: exit?.signal ?? `code ${exit?.code}`,
    expected: 'code 0',
    ok: exit?.code === 0,
  };
}

async function traceFinding(traceFile: string): Promise<CheckFinding> {
  const { code, output } = await checkTraces([traceFile]);
  return {
    check: `trace of ${basename(traceFile, '.trace.ndjson')}`,
    seen: code === 0 ? 'accepted' : 'rejected',
    expected: 'accepted by the sequence diagrams',
    ok: code === 0,
    ...(code !== 0 && { detail: output }),
  };
}
