import { extname, join } from 'node:path';
import { TraceChecker, type TraceCheckReport } from '../../debugger/check/check.ts';
import { loadDiagrams } from '../../debugger/diagram/load.ts';
import type { ExplorationSubject } from '../../debugger/explore/explore-command.ts';
import type { Helper } from '../../debugger/explore/two-explorers.ts';
import type { World } from '../../debugger/explore/world.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import { createRecorder } from '../../runtime/trace/recorder.ts';
import type { TraceSink } from '../../runtime/trace/trace.ts';
import { type ConformanceOptions, ConformingWorld } from '../exploration-conformance.ts';
import { type Bounds, type ExplorationOptions, explorationBaseIds } from './exploration-bounds.ts';
import { type AgentMachines, agentMachines, type ScriptedAgent, scriptedAgent } from './exploration-effects.ts';
import { ExplorationWorld } from './exploration-world.ts';

/** The helper is next to this file, in the bundle, too. */
const helperModule = new URL(`./explore-helper${extname(import.meta.filename)}`, import.meta.url);

export interface ExplorationOrder {
  readonly bounds: Bounds;
  readonly options: Pick<ExplorationOptions, 'settings' | 'baseIds' | 'exactTimes'>;
}

export interface AgentExploration extends ExplorationSubject {
  readonly helper: Helper;
  beginWorld(options?: Pick<ExplorationOptions, 'inspect' | 'recordsTime'>): ExplorationWorld;
  /** Deviations from the sequence diagrams are violations, too. */
  beginChecked(options?: ConformanceOptions): World;
  conformance(path: readonly string[]): TraceCheckReport;
}

export function exploreAgent(
  bounds: Bounds,
  options: Omit<ExplorationOptions, 'inspect' | 'recordsTime'> & {
    machines?: Partial<AgentMachines>;
    change?: (agent: ScriptedAgent) => ScriptedAgent;
  } = {},
): AgentExploration {
  const { change = (unchanged) => unchanged, baseIds = explorationBaseIds } = options;
  const agent = change(scriptedAgent({ ...agentMachines, ...options.machines }, [...baseIds]));
  const diagrams = loadDiagrams(join(packageRoot(), 'machines/agent/sequences'));
  const beginWorld: AgentExploration['beginWorld'] = (extraOptions = {}) =>
    new ExplorationWorld(agent, bounds, { ...options, ...extraOptions });
  const followPath = (path: readonly string[], sinks: readonly TraceSink[]): TraceCheckReport => {
    let world: ExplorationWorld | undefined;
    const recorder = createRecorder({
      program: 'pilot-agent',
      machines: [agent],
      sinks,
      now: () => world?.earliestTime ?? 0,
    });
    const checker = new TraceChecker(diagrams);
    recorder.observe(checker.feed);
    world = beginWorld({ inspect: recorder.inspect, recordsTime: true });
    for (const choice of path) world.apply(choice);
    for (const sink of sinks) sink.close();
    return checker.report();
  };
  const { settings, exactTimes = false } = options;
  const order: ExplorationOrder = {
    bounds,
    options: { baseIds, exactTimes, ...(settings !== undefined && { settings }) },
  };
  return {
    bounds: { ...bounds },
    helper: { module: helperModule, world: order },
    beginWorld: beginWorld,
    beginChecked: (extraOptions) =>
      new ConformingWorld(({ inspect }) => beginWorld({ inspect }), diagrams, extraOptions),
    conformance: (path) => followPath(path, []),
    writeTrace: (path, sink) => void followPath(path, [sink]),
  };
}
