/** The agent as `chartpilot explore` and its tests see it: worlds, and runs written down as traces. */
import { join } from 'node:path';
import { type CheckReport, TraceChecker } from '../../src/debugger/check.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import type { ExplorationSubject } from '../../src/debugger/explore/explore-command.ts';
import { createRecorder } from '../../src/runtime/actor-system.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import type { TraceSink } from '../../src/runtime/trace.ts';
import { type AgentMachines, agentMachines, type ScriptedAgent, scriptedAgent } from './exploration-effects.ts';
import { type Bounds, type ExplorationOptions, ExplorationWorld } from './exploration-world.ts';

export interface AgentExploration extends ExplorationSubject {
  begin(options?: Pick<ExplorationOptions, 'inspect'>): ExplorationWorld;
  /** A run held against the sequence diagrams. */
  conformance(path: readonly string[]): CheckReport;
}

export function exploreAgent(
  bounds: Bounds,
  options: Omit<ExplorationOptions, 'inspect'> & {
    machines?: Partial<AgentMachines>;
    change?: (agent: ScriptedAgent) => ScriptedAgent;
  } = {},
): AgentExploration {
  const { change = (unchanged) => unchanged } = options;
  const agent = change(scriptedAgent({ ...agentMachines, ...options.machines }));
  const diagrams = loadDiagrams(join(packageRoot(), 'machines/agent/sequences'));
  const begin = (more: Pick<ExplorationOptions, 'inspect'> = {}): ExplorationWorld =>
    new ExplorationWorld(agent, bounds, { ...options, ...more });
  const follow = (path: readonly string[], sinks: readonly TraceSink[]): CheckReport => {
    let world: ExplorationWorld | undefined;
    const recorder = createRecorder({ program: 'pilot-agent', sinks, now: () => world?.earliestTime ?? 0 });
    const checker = new TraceChecker(diagrams);
    recorder.observe(checker.feed);
    world = begin({ inspect: recorder.inspect });
    for (const choice of path) world.apply(choice);
    for (const sink of sinks) sink.close();
    return checker.report();
  };
  return {
    bounds: { ...bounds },
    begin,
    conformance: (path) => follow(path, []),
    writeTrace: (path, sink) => void follow(path, [sink]),
  };
}
