import { extname, join } from 'node:path';
import type { InspectionEvent } from 'xstate';
import { TraceChecker } from '../../debugger/check/check.ts';
import { loadDiagrams } from '../../debugger/diagram/load.ts';
import type { ExplorationSubject } from '../../debugger/explore/explore-command.ts';
import type { Helper } from '../../debugger/explore/two-explorers.ts';
import type { World } from '../../debugger/explore/world.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import { createRecorder } from '../../runtime/trace/recorder.ts';
import type { TraceSink } from '../../runtime/trace/trace.ts';
import { type ConformanceOptions, ConformingWorld } from '../exploration-conformance.ts';
import type { PushBounds, PushWorldOptions } from './discovery-bounds.ts';
import { type PushMachines, pushMachines, scriptedCharts } from './discovery-charts.ts';
import { PushWorld } from './discovery-exploration.ts';
import { meshTypes } from './discovery-mesh.ts';

/** The helper is next to this file, in the bundle, too. */
const helperModule = new URL(`./explore-discovery-helper${extname(import.meta.filename)}`, import.meta.url);

export const defaultPushWorld: PushWorldOptions = {
  clients: ['sotw', 'delta'],
  types: meshTypes.slice(0, 2),
  events: ['endpoint', 'cluster'],
  throttle: 1,
  window: 0,
  startsConnected: true,
};

export interface PushExplorationOrder {
  readonly bounds: PushBounds;
  readonly options: Partial<PushWorldOptions>;
}

/** The exploration begins after the configuration was read; bootstrap-detailed.mmd begins before. */
const startEvents: ReadonlySet<string> = new Set([
  'services.load',
  'services.pending',
  'services.synced',
  'push.start',
]);

function inspectAfterStart(inspect: (event: InspectionEvent) => void): (event: InspectionEvent) => void {
  return (event) => {
    if (event.type !== '@xstate.event' || !startEvents.has(event.event.type)) inspect(event);
  };
}

export interface PushExploration extends ExplorationSubject {
  readonly helper: Helper;
  beginWorld(extraOptions?: Pick<PushWorldOptions, 'inspect'>): PushWorld;
  /** Deviations from the sequence diagrams are violations, too. */
  beginChecked(options?: ConformanceOptions): World;
}

export function explorePush(
  bounds: PushBounds,
  options: Partial<PushWorldOptions> & { machines?: Partial<PushMachines> } = {},
): PushExploration {
  const { machines, ...worldOptions } = options;
  const charts = scriptedCharts({ ...pushMachines, ...machines });
  const all = loadDiagrams(join(packageRoot(), 'machines/discovery/sequences'));
  const diagrams = all.filter(({ file }) => /\/(push|push-queue|ads)\.mmd$/.test(file));
  const beginWorld: PushExploration['beginWorld'] = (extraOptions = {}) =>
    new PushWorld(charts, bounds, { ...defaultPushWorld, ...worldOptions, ...extraOptions });
  const order: PushExplorationOrder = { bounds, options: worldOptions };
  return {
    bounds: { ...bounds, clients: (worldOptions.clients ?? defaultPushWorld.clients).length },
    helper: { module: helperModule, world: order },
    beginWorld: beginWorld,
    beginChecked: (extraOptions) =>
      new ConformingWorld(({ inspect }) => beginWorld({ inspect: inspectAfterStart(inspect) }), diagrams, extraOptions),
    writeTrace(path: readonly string[], sink: TraceSink) {
      const recorder = createRecorder({
        program: 'pilot-discovery',
        machines: [charts.discovery, charts.connection],
        sinks: [sink],
        now: () => 0,
      });
      recorder.observe(new TraceChecker(diagrams).feed);
      const world = beginWorld({ inspect: recorder.inspect });
      for (const choice of path) world.apply(choice);
      sink.close();
    },
  };
}
