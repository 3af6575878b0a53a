/** Statecharts of every shape that XState allows, made from numbers. */
import fc from 'fast-check';
import type { Statechart, StatechartState, StatechartTransition } from '../../../runtime/statechart.ts';

const word = fc.constantFrom(
  'a',
  'config.changed',
  'waiting for somebody else',
  'x<y & "z"',
  'isNewerThanTheLast',
  'ÄÖ 東京',
);
const someWords = fc.option(fc.array(word, { minLength: 1, maxLength: 3 }), { nil: undefined });

const stateSeed = fc.record({
  /** Share of the states so far: whom it lies in. */
  parent: fc.nat(1000),
  name: word,
  parallel: fc.boolean(),
  final: fc.boolean(),
  entry: someWords,
});
const transitionSeed = fc.record({
  source: fc.nat(1000),
  targets: fc.array(fc.nat(1000), { maxLength: 2 }),
  kind: fc.constantFrom('event' as const, 'timer' as const, 'always' as const, 'done' as const, 'error' as const),
  on: word,
  guard: fc.option(word, { nil: undefined }),
  actions: someWords,
});

export const anyChart: fc.Arbitrary<Statechart> = fc
  .record({
    states: fc.array(stateSeed, { minLength: 1, maxLength: 14 }),
    transitions: fc.array(transitionSeed, { maxLength: 20 }),
  })
  .map(({ states, transitions }) => {
    const parents = [-1, ...states.map(({ parent }, index) => parent % (index + 1))];
    const made = parents.map((parent, number): StatechartState => {
      const seed = states[number - 1];
      const child = parents.indexOf(number);
      const type =
        child < 0 ? (seed?.final === true ? 'final' : 'atomic') : seed?.parallel === true ? 'parallel' : 'compound';
      return {
        path: pathOf(number, parents, states),
        type,
        ...(parent >= 0 && { parent }),
        ...(type === 'compound' && { initial: child }),
        ...(seed?.entry !== undefined && { entry: seed.entry }),
      };
    });
    return {
      id: 'any',
      states: made,
      transitions: transitions.map(
        ({ source, targets, on, kind, guard, actions }): StatechartTransition => ({
          source: source % made.length,
          targets: targets.map((target) => target % made.length),
          kind,
          on: kind === 'always' ? '' : on,
          ...(guard !== undefined && { guard }),
          ...(actions !== undefined && { actions }),
        }),
      ),
    };
  });

function pathOf(number: number, parents: readonly number[], seeds: readonly { readonly name: string }[]): string {
  if (number === 0) return '';
  const above = pathOf(parents[number]!, parents, seeds);
  const name = `${seeds[number - 1]!.name.replaceAll('.', ' ')} ${number}`;
  return above === '' ? name : `${above}.${name}`;
}
