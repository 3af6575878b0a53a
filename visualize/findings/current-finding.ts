import { computed, signal } from '@preact/signals';
import { deviationsFinding } from '../../src/debugger/findings/deviations.ts';
import type { Finding, Weight } from '../../src/debugger/findings/finding.ts';
import { connection } from '../model/connection.ts';
import { place, recording, session, size } from '../model/place.ts';
import { firstIndexAfter } from '../model/recording/sorted.ts';

const noFindings: readonly Finding[] = [];

/** Includes findings about the end of the trace if no more records follow. */
export const findings = computed<readonly Finding[]>(() => {
  const openRecording = recording.value;
  if (openRecording === undefined || size.value === 0 || connection.value.kind === 'opening') return noFindings;
  // These findings depend on all records of the complete trace.
  if (session.value?.part !== undefined) return session.value.part.verdicts;
  const { findings: follower } = openRecording;
  const hasConnectionEnded = connection.value.kind !== 'live' && connection.value.kind !== 'lost';
  const deviationFinding = deviationsFinding(openRecording.deviations);
  return [
    ...follower.findings,
    ...(hasConnectionEnded ? follower.finish() : []),
    ...(deviationFinding === undefined ? [] : [deviationFinding]),
  ].sort((a, b) => a.index - b.index);
});

/** The finding stays selected while the place is between `from` (its record or its root cause) and its record. */
export const chosenFinding = signal<(Pick<Finding, 'rule' | 'index'> & { readonly from: number }) | undefined>(
  undefined,
);

const weightOrder: readonly Weight[] = ['fine', 'note', 'bad'];

/** Index in {@link findings}: the chosen finding, otherwise the worst of the last record up to the place that has findings; -1 without one. */
export const currentFinding = computed(() => {
  const allFindings = findings.value;
  const finding = chosenFinding.value;
  if (finding !== undefined && place.value >= finding.from && place.value <= finding.index) {
    const chosenIndex = allFindings.findIndex(({ rule, index }) => rule === finding.rule && index === finding.index);
    if (chosenIndex !== -1) return chosenIndex;
  }
  const lastReachedIndex = firstIndexAfter(allFindings, ({ index }) => index > place.value) - 1;
  const index = allFindings[lastReachedIndex]?.index;
  let currentIndex = lastReachedIndex;
  for (
    let findingIndex = lastReachedIndex;
    findingIndex >= 0 && allFindings[findingIndex]!.index === index;
    findingIndex--
  ) {
    const { weight } = allFindings[findingIndex]!;
    if (weightOrder.indexOf(weight) > weightOrder.indexOf(allFindings[currentIndex]!.weight))
      currentIndex = findingIndex;
  }
  return currentIndex;
});
