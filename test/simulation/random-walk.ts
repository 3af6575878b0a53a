/**
 * Random runs of a simulation to its end. An exploration returns to a state by replaying the complete run that led to it. A random run costs one step
 * per state, and so reaches combinations of several changes and faults whose exploration would take days.
 */
import fc from 'fast-check';
import type { InvariantViolation, World } from '../../src/debugger/explore/world.ts';

export interface WalkOptions {
  readonly seed: number;
  readonly walks: number;
  /** Number of random steps; afterwards only pending events are processed. */
  readonly maxRandomSteps?: number;
}

export interface WalkResult {
  readonly walks: number;
  readonly steps: number;
  /** Number of different states. */
  readonly states: number;
  /** The shrunk path. */
  readonly failingWalk?: { readonly path: readonly string[]; readonly violations: readonly InvariantViolation[] };
}

/** A longer run never becomes idle. */
const maxSteps = 2_000;
/** Every n-th step may be a change or a fault. */
const stepsForBudgeted = 5;

/** Explores at random; the same options give the same result. */
export function walkAtRandom(createWorld: () => World, options: WalkOptions): WalkResult {
  const { seed, walks, maxRandomSteps = 80 } = options;
  const states = new Set<string>();
  let steps = 0;
  let isShrinking = false;
  const walk = (draws: readonly number[]): { path: string[]; violations: readonly InvariantViolation[] } => {
    const world = createWorld();
    const path: string[] = [];
    for (let step = 0; step < maxSteps && world.violations.length === 0; step++) {
      const choices = world.choices();
      const freeChoices = choices.filter((choice) => choice.free);
      const draw = draws[step];
      const isBudgeted = draw !== undefined && (draw % stepsForBudgeted === 0 || freeChoices.length === 0);
      const offeredChoices = isBudgeted ? choices : freeChoices;
      if (offeredChoices.length === 0 && draw === undefined) return { path, violations: world.violations };
      if (offeredChoices.length === 0) continue;
      const { name } =
        offeredChoices[draw === undefined ? 0 : Math.floor(draw / stepsForBudgeted) % offeredChoices.length]!;
      path.push(name);
      world.apply(name);
      if (isShrinking) continue;
      steps++;
      states.add(world.key());
    }
    const endless: InvariantViolation = { invariant: 'every run becomes idle', detail: `${maxSteps} steps` };
    return { path, violations: world.violations.length > 0 ? world.violations : [endless] };
  };
  const property = fc.property(fc.array(fc.nat(1_000_000), { minLength: 1, maxLength: maxRandomSteps }), (draws) => {
    const { violations } = walk(draws);
    isShrinking ||= violations.length > 0;
    return violations.length === 0;
  });
  const { counterexample } = fc.check(property, { seed, numRuns: walks });
  const found = counterexample === null ? undefined : walk(counterexample[0]);
  return { walks, steps, states: states.size, ...(found !== undefined && { failingWalk: found }) };
}
