/** Checks after all tests of a file that the runs of the control plane's charts conform to the diagrams, and that a replay ends in the same state. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import type { AnyStateMachine } from 'xstate';
import { discoveryMachine } from '../../machines/discovery/discovery.machine.ts';
import { TraceChecker } from '../../src/debugger/check/check.ts';
import { outsideActor } from '../../src/debugger/check/message.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { DiscoveryWorld } from '../simulation/discovery-world.ts';
import { replayDifference } from '../simulation/replayed.ts';

/** The part of a world that is checked. */
interface CheckedWorld {
  readonly records: readonly TraceRecord[];
  readonly failure: unknown;
}

interface Worlds {
  /** All worlds of the file so far. */
  readonly instances: CheckedWorld[];
  readonly machine: AnyStateMachine;
}

/**
 * Checks each world of the file against the diagrams, after all tests.
 *
 * @param diagrams diagrams that must each begin in some world; otherwise the check would be meaningless
 * @param brokenDiagrams actors in which some tests have a faulty effect, which no diagram contains
 */
export function eachWorldFollowsTheDiagrams(
  diagrams: readonly string[],
  brokenDiagrams: readonly string[],
  { instances, machine }: Worlds = { instances: DiscoveryWorld.instances, machine: discoveryMachine },
): void {
  beforeAll(() => {
    // Worlds of another file are checked in that file.
    instances.splice(0);
  });

  afterAll(() => {
    const all = loadDiagrams(join(packageRoot(), 'machines/discovery/sequences'));
    const bugs = new Set(brokenDiagrams.map((actor) => `xstate.error.actor.${actor}`));
    const begunDiagrams = new Set<string>();
    for (const world of instances.splice(0)) {
      expect(world.failure).toBeUndefined();
      const checker = new TraceChecker(all);
      for (const record of world.records) checker.feed(record);
      const report = checker.report();
      // Events that a test sends to an actor itself are not the program's behaviour.
      const deviations = report.departures.filter(
        ({ message }) => message.from !== outsideActor && !bugs.has(message.type),
      );
      expect(deviations).toEqual([]);
      for (const { file, started } of report.diagrams)
        if (started > 0) begunDiagrams.add(file.slice(file.lastIndexOf('/') + 1));
      expect(replayDifference(world.records, machine)).toBe('');
    }
    expect(diagrams.filter((name) => !begunDiagrams.has(`${name}.mmd`))).toEqual([]);
  });
}
