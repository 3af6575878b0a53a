import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type LabelSelector, selectsLabels } from '../../model/kinds/label-selector.ts';
import { callingConfigurations, commonLabels, type InjectingConfiguration, overlapsOf } from './overlaps.ts';
import { callingEntries, webhookEntriesOf } from './webhook-entries.ts';

const configurationOf = (name: string, revision: string, options = {}): InjectingConfiguration => ({
  ...{ name, revision },
  entries: webhookEntriesOf(revision, options),
});

test('configurations of different revisions and tags do not overlap', () => {
  const all = ['', 'canary', 'stable'].map((revision) => configurationOf(`injector-${revision}`, revision));
  expect(overlapsOf(all)).toEqual([]);
});

test('two configurations of the default revision overlap, and the labels that both select are reported', () => {
  const sidecarInjector = configurationOf('istio-sidecar-injector', '');
  const revisionTag = configurationOf('istio-revision-tag-default', 'default');
  const [overlap, ...otherOverlaps] = overlapsOf([sidecarInjector, revisionTag]);
  expect(otherOverlaps).toEqual([]);
  expect(overlap!.configurations).toEqual(['istio-revision-tag-default', 'istio-sidecar-injector']);
  for (const { entries } of [sidecarInjector, revisionTag])
    expect(callingEntries(entries, overlap!.namespaceLabels, overlap!.podLabels).length).toBeGreaterThan(0);
  expect(callingConfigurations([sidecarInjector, revisionTag], overlap!.namespaceLabels, overlap!.podLabels)).toEqual(
    overlap!.configurations,
  );
});

test('a webhook for namespaces without labels does not overlap with webhooks of other revisions', () => {
  expect(overlapsOf([configurationOf('a', '', { injectsUnlabelled: true }), configurationOf('b', 'canary')])).toEqual(
    [],
  );
});

test('common labels of two selectors are found if and only if they exist', () => {
  const keys = ['a', 'b'];
  const values = ['x', 'y', 'z'];
  const requirement = fc.record({
    key: fc.constantFrom(...keys),
    operator: fc.constantFrom('In' as const, 'NotIn' as const, 'Exists' as const, 'DoesNotExist' as const),
    values: fc.subarray(values),
  });
  const selector: fc.Arbitrary<LabelSelector> = fc.record({
    matchLabels: fc.dictionary(fc.constantFrom(...keys), fc.constantFrom(...values)),
    matchExpressions: fc.array(requirement, { maxLength: 3 }),
  });
  const everyValue = [undefined, ...values, 'other'];
  const all = everyValue.flatMap((a) =>
    everyValue.map((b) => ({ ...(a !== undefined && { a }), ...(b !== undefined && { b }) })),
  );
  fc.assert(
    fc.property(selector, selector, (a, b) => {
      const sharedLabels = commonLabels(a, b);
      if (sharedLabels !== undefined)
        expect(selectsLabels(a, sharedLabels) && selectsLabels(b, sharedLabels)).toBe(true);
      else expect(all.some((labels) => selectsLabels(a, labels) && selectsLabels(b, labels))).toBe(false);
    }),
    { numRuns: 1_000 },
  );
});
